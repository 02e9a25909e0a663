package jobs;

import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import server.Server;

/** What is done with jobs that run. */
final class Jobs {
    /** Ample: a job takes 5 to 15 seconds on a machine that does nothing else. */
    private static final int LIMIT_SECONDS = 120;

    /** Waits until the job has ended well. */
    static void await(JobClient job) throws Exception {
        job.getJobExecutionResult().get(LIMIT_SECONDS, TimeUnit.SECONDS);
    }

    static void awaitThat(String what, BooleanSupplier holds) throws Exception {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(LIMIT_SECONDS);
        while (!holds.getAsBoolean()) {
            if (System.nanoTime() > deadline) {
                throw new AssertionError("not so after " + LIMIT_SECONDS + " s: " + what);
            }
            Thread.sleep(1);
        }
    }

    /** Kills the server with -9 and starts it again this often, while this many records are on their way. */
    static void killWhilePassing(Server server, int kills, int records) throws Exception {
        for (int kill = 1; kill <= kills; kill++) {
            int passed = records * kill / (kills + 1);
            awaitThat(passed + " records passed", () -> Faults.passed() >= passed);
            server.restart();
        }
    }

    static DataStream<String> read(StreamExecutionEnvironment environment, Server server, String topic) {
        return environment.fromSource(Job.source(server.serviceUrl(), topic), WatermarkStrategy.noWatermarks(), topic);
    }

    private Jobs() {
    }
}
