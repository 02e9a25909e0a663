package transactions;

import static transactions.Topics.check;

import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.transaction.Transaction;

/** Reads, writes and acknowledges in one transaction, again and again, with aborts in between. */
final class Transform {
    private static final int MESSAGES = 100;

    static void exactlyOnce(Topics topics) throws Exception {
        String in = topics.name("in");
        String out = topics.name("out");
        try (Producer<String> source = topics.producer(in);
             Consumer<String> input = topics.consumer(in, "s");
             Producer<String> output = topics.producer(out);
             Consumer<String> result = topics.consumer(out, "s")) {
            for (int i = 0; i < MESSAGES; i++) {
                source.sendAsync("m" + i);
            }
            source.flush();
            transform(topics, input, output);
            Set<String> seen = new HashSet<>();
            for (int i = 0; i < MESSAGES; i++) {
                Message<String> message = result.receive(10, TimeUnit.SECONDS);
                check(message != null, "only " + i + " of " + MESSAGES + " results");
                check(seen.add(message.getValue()), message.getValue() + " came twice");
                result.acknowledge(message);
            }
            Topics.expectNothing(result);
            Topics.expectNothing(input);
        }
    }

    /** Commits one transaction per input message; every third attempt is aborted and its message comes again. */
    private static void transform(Topics topics, Consumer<String> input, Producer<String> output) throws Exception {
        int committed = 0;
        for (int attempt = 0; committed < MESSAGES; attempt++) {
            Message<String> message = input.receive(10, TimeUnit.SECONDS);
            check(message != null, "no input after " + committed + " commits");
            Transaction txn = topics.begin(60_000);
            output.newMessage(txn).value(message.getValue().toUpperCase()).send();
            input.acknowledgeAsync(message.getMessageId(), txn).get();
            if (attempt % 3 == 2) {
                txn.abort().get();
                continue;
            }
            txn.commit().get();
            committed++;
        }
    }

    private Transform() {
    }
}
