package load;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.pulsar.client.api.PulsarClient;

/**
 * Clients that open and commit one transaction after the other, from the moment when "started" is printed until there is a line on
 * standard input or its end. Then it prints "COMMITTED FAILED REASON": how many transactions, and why the first one failed that
 * did, or nothing. What fails does not end the load.
 */
public final class Commits {
    private static final int LOOPS = 8;

    private final AtomicLong committed = new AtomicLong();
    private final AtomicLong failed = new AtomicLong();
    private final AtomicReference<Throwable> reason = new AtomicReference<>();
    private volatile boolean stopped;

    public static void main(String[] args) throws Exception {
        if (args.length == 0) {
            System.err.println("usage: load.Commits pulsar://HOST:PORT...");
            System.exit(2);
        }
        new Commits().run(args);
        System.exit(0);
    }

    private void run(String[] urls) throws Exception {
        List<PulsarClient> clients = new ArrayList<>();
        for (String url : urls) {
            clients.add(PulsarClient.builder().serviceUrl(url).enableTransaction(true).build());
        }
        List<CompletableFuture<Void>> loops = new ArrayList<>();
        for (int i = 0; i < LOOPS; i++) {
            CompletableFuture<Void> loop = new CompletableFuture<>();
            loops.add(loop);
            next(clients.get(i % clients.size()), loop);
        }
        System.out.println("started");
        new BufferedReader(new InputStreamReader(System.in)).readLine();
        stopped = true;
        CompletableFuture.allOf(loops.toArray(new CompletableFuture<?>[0])).join();
        System.out.println(committed + " " + failed + " " + (reason.get() == null ? "" : reason.get()));
        for (PulsarClient client : clients) {
            client.close();
        }
    }

    /** Runs one transaction after the other until the load is stopped. */
    private void next(PulsarClient client, CompletableFuture<Void> loop) {
        if (stopped) {
            loop.complete(null);
            return;
        }
        client.newTransaction().withTransactionTimeout(1, TimeUnit.MINUTES).build()
                .thenCompose(txn -> txn.commit())
                .whenComplete((done, error) -> {
                    if (error != null) {
                        reason.compareAndSet(null, error);
                        failed.incrementAndGet();
                    } else {
                        committed.incrementAndGet();
                    }
                    // Not from this thread: a chain of answers would grow its stack.
                    CompletableFuture.runAsync(() -> next(client, loop));
                });
    }
}
