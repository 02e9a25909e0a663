package transactions;

import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.pulsar.client.api.PulsarClient;

/** Runs every scenario against the server whose service URL is the only argument. Exit code 1 if one fails. */
public final class Main {
    /** A scenario fails by throwing. */
    interface Scenario {
        void run(Topics topics) throws Exception;
    }

    public static void main(String[] args) throws Exception {
        if (args.length != 1) {
            System.err.println("usage: transactions.Main pulsar://host:port");
            System.exit(2);
        }
        Map<String, Scenario> scenarios = new LinkedHashMap<>();
        scenarios.put("a commit shows the messages of every topic", Produce::commit);
        scenarios.put("an abort hides the messages for ever", Produce::abort);
        scenarios.put("two interleaved transactions on one topic", Produce::interleaved);
        scenarios.put("a committed acknowledgement stays", Acknowledge::commit);
        scenarios.put("an aborted acknowledgement gives the message back", Acknowledge::abort);
        scenarios.put("a timeout aborts, and the outcome says so", Outcome::timeout);
        scenarios.put("a second client repeats a commit", Outcome::repeatedCommit);
        scenarios.put("a second client repeats an abort", Outcome::repeatedAbort);
        scenarios.put("consume, transform, produce: each input exactly once", Transform::exactlyOnce);

        int failed = 0;
        try (PulsarClient client = PulsarClient.builder().serviceUrl(args[0]).enableTransaction(true).build()) {
            for (Map.Entry<String, Scenario> scenario : scenarios.entrySet()) {
                failed += run(scenario.getKey(), scenario.getValue(), new Topics(client, args[0])) ? 0 : 1;
            }
        }
        System.out.printf("java client: %d scenarios, %d failed%n", scenarios.size(), failed);
        System.exit(failed == 0 ? 0 : 1);
    }

    private static boolean run(String name, Scenario scenario, Topics topics) {
        long start = System.nanoTime();
        try {
            scenario.run(topics);
            System.out.printf("ok    %-60s %5d ms%n", name, (System.nanoTime() - start) / 1_000_000);
            return true;
        } catch (Throwable t) {
            System.out.printf("FAIL  %s%n", name);
            t.printStackTrace(System.out);
            return false;
        }
    }

    private Main() {
    }
}
