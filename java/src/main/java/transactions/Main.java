package transactions;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.regex.Pattern;
import org.apache.pulsar.PulsarVersion;
import server.Server;

/** Runs every scenario against a server that it starts. Exit code 1 if one fails. */
public final class Main {
    private static final int LIMIT_SECONDS = 60;

    /** A scenario fails by throwing. */
    interface Scenario {
        void run(Topics topics) throws Exception;
    }

    private static Map<String, Scenario> scenarios() {
        Map<String, Scenario> all = new LinkedHashMap<>();
        Produce.addTo(all);
        Outcome.addTo(all);
        Acknowledge.addTo(all);
        BatchIndex.addTo(all);
        Redeliver.addTo(all);
        Read.addTo(all);
        Participants.addTo(all);
        Sequence.addTo(all);
        Schemas.addTo(all);
        Transform.addTo(all);
        return all;
    }

    public static void main(String[] args) throws Exception {
        if (args.length < 2 || args.length > 3) {
            System.err.println("usage: transactions.Main SERVER_BINARY SCRATCH_DIRECTORY [REGULAR_EXPRESSION_OF_NAMES]");
            System.exit(2);
        }
        Pattern chosen = Pattern.compile(args.length == 3 ? args[2] : "");
        Path binary = Path.of(args[0]).toAbsolutePath();
        Path scratch = Files.createDirectories(Path.of(args[1]).toAbsolutePath());
        int run = 0;
        int failed = 0;
        try (Server server = new Server(binary, Files.createTempDirectory(scratch, "server"))) {
            for (Map.Entry<String, Scenario> scenario : scenarios().entrySet()) {
                if (!chosen.matcher(scenario.getKey()).find()) {
                    continue;
                }
                run++;
                failed += run(scenario.getKey(), scenario.getValue(), server, binary, scratch) ? 0 : 1;
            }
            if (failed > 0) {
                System.out.println("server: " + String.join("\nserver: ", server.lines()));
            }
        }
        System.out.printf("java client %s: %d scenarios, %d failed%n", PulsarVersion.getVersion(), run, failed);
        System.exit(failed == 0 ? 0 : 1);
    }

    private static boolean run(String name, Scenario scenario, Server server, Path binary, Path scratch) throws Exception {
        ExecutorService thread = Executors.newSingleThreadExecutor(task -> new Thread(task, "scenario"));
        long start = System.nanoTime();
        Throwable failure = null;
        try (Topics topics = new Topics(server, binary, scratch)) {
            Future<?> result = thread.submit(() -> {
                scenario.run(topics);
                return null;
            });
            try {
                result.get(LIMIT_SECONDS, TimeUnit.SECONDS);
            } catch (ExecutionException e) {
                failure = e.getCause();
            } catch (TimeoutException e) {
                failure = new AssertionError("not done after " + LIMIT_SECONDS + " s");
                failure.setStackTrace(stackOf("scenario"));
            }
        } finally {
            thread.shutdownNow();
        }
        System.out.printf("%-5s %-80s %5d ms%n", failure == null ? "ok" : "FAIL", name, (System.nanoTime() - start) / 1_000_000);
        if (failure != null) {
            failure.printStackTrace(System.out);
        }
        return failure == null;
    }

    private static StackTraceElement[] stackOf(String name) {
        return Thread.getAllStackTraces().entrySet().stream().filter(thread -> thread.getKey().getName().equals(name))
                .map(Map.Entry::getValue).findFirst().orElse(new StackTraceElement[0]);
    }

    private Main() {
    }
}
