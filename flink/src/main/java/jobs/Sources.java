package jobs;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import jobs.Faults.Moment;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.DiscardingSink;
import server.Server;

/**
 * Jobs with the source on unbatched messages, which count records in checkpointed state. The source ends by itself, at the last
 * visible message: the topics end with aborted and open ones.
 */
final class Sources {
    private static final int RECORDS = 2000;
    /** Records, and so milliseconds, after a checkpoint by which the server has its acknowledgement: the client groups for 100 ms. */
    private static final int ACKNOWLEDGED = 200;

    private final Server server;
    private final Path scratch;

    Sources(Server server, Path scratch) {
        this.server = server;
        this.scratch = scratch;
    }

    private interface Run {
        Row run(String name) throws Exception;
    }

    /** Runs the jobs whose names match. */
    List<Row> runAll(Pattern chosen) throws Exception {
        Map<String, Run> all = new LinkedHashMap<>();
        all.put("source: the job fails before a checkpoint is complete", name -> failing(name, Moment.CHECKPOINT));
        all.put("source: the job fails after a checkpoint", name -> failing(name, Moment.COMPLETED));
        all.put("source: the server is killed", this::killed);
        List<Row> rows = new ArrayList<>();
        for (Map.Entry<String, Run> job : all.entrySet()) {
            if (chosen.matcher(job.getKey()).find()) {
                rows.add(job.getValue().run(job.getKey()));
            }
        }
        return rows;
    }

    private Row failing(String name, Moment moment) throws Exception {
        long start = System.nanoTime();
        Faults.arm(moment);
        Jobs.await(start(name, topic(moment.name())));
        int[] counts = Count.counts();
        boolean once = Arrays.stream(counts).allMatch(count -> count == 1);
        String broken = !Faults.failed() ? "the job did not fail" : once ? "" : "not each record once";
        return Row.of(name, counts, Faults.failed() ? 1 : 0, 0, secondsSince(start), broken);
    }

    /** The consumer connects again and is sent what it has not acknowledged; the connector compares no ids. */
    private Row killed(String name) throws Exception {
        long start = System.nanoTime();
        Faults.arm(null);
        JobClient job = start(name, topic("killed"));
        BitSet before = inCheckpointOnceAcknowledged();
        server.restart();
        Jobs.await(job);
        int[] counts = Count.counts();
        String broken = "";
        if (Arrays.stream(counts).anyMatch(count -> count == 0)) {
            broken = "records are lost";
        } else if (IntStream.range(0, RECORDS).anyMatch(i -> counts[i] > 1 && before.get(i))) {
            broken = "records of the last completed checkpoint came again";
        }
        return Row.of(name, counts, 0, 1, secondsSince(start), broken);
    }

    /** Waits until a checkpoint, not the first, was acknowledged some time ago, and returns its records. */
    private static BitSet inCheckpointOnceAcknowledged() throws Exception {
        Jobs.awaitThat("two checkpoints are complete", () -> Faults.completed() >= 2);
        while (true) {
            int completed = Faults.completed();
            int passed = Faults.passed();
            Jobs.awaitThat("records follow the checkpoint", () -> Faults.passed() >= passed + ACKNOWLEDGED);
            BitSet records = Count.inCheckpoint();
            if (Faults.completed() == completed) {
                return records;
            }
        }
    }

    private JobClient start(String name, String topic) throws Exception {
        Records.fill(server.serviceUrl(), topic, RECORDS);
        StreamExecutionEnvironment environment = Job.environment(1, Files.createTempDirectory(scratch, "checkpoints"), null);
        Jobs.read(environment, server, topic).map(new Faults<String>(), Types.STRING)
                .map(new Count(RECORDS), Types.STRING).addSink(new DiscardingSink<>());
        return environment.executeAsync(name);
    }

    private static String topic(String name) {
        return "persistent://public/default/flink-source-" + name;
    }

    private static int secondsSince(long start) {
        return (int) TimeUnit.NANOSECONDS.toSeconds(System.nanoTime() - start);
    }
}
