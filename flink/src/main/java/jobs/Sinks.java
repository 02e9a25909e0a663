package jobs;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import jobs.Faults.Moment;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import server.Server;

/** Jobs with the exactly-once sink: each record is in the topic once, whatever fails. */
final class Sinks {
    private static final int RECORDS = 1500;
    /** Of one writer: more than it comes to in the time of a test. */
    private static final long ENDLESS = 1_000_000_000;

    private record Ended(String job, String topic, int failures, int kills, int seconds, String broken) {
    }

    private final Server server;
    private final Path scratch;
    private final List<Ended> ended = new ArrayList<>();

    Sinks(Server server, Path scratch) {
        this.server = server;
        this.scratch = scratch;
    }

    private interface Run {
        void run(String name) throws Exception;
    }

    /** Runs the jobs whose names match. */
    void runAll(Pattern chosen) throws Exception {
        Map<String, Run> all = new LinkedHashMap<>();
        all.put("sink: two writers on a new topic", name -> generated(name, 2, null, true, 0));
        all.put("sink: the job fails before a checkpoint is complete", name -> generated(name, 1, Moment.CHECKPOINT, true, 0));
        all.put("sink: the job fails while a checkpoint is committed", name -> generated(name, 1, Moment.COMPLETED, false, 0));
        all.put("sink: the job fails after the commit of a checkpoint", name -> generated(name, 1, Moment.COMPLETED, true, 0));
        all.put("sink: the server is killed", name -> generated(name, 1, null, true, 2));
        all.put("sink: two writers, the job fails and the server is killed", name -> generated(name, 2, Moment.COMPLETED, false, 2));
        all.put("sink: restored in a new cluster from a committed checkpoint", this::restored);
        all.put("source to sink: the job fails", this::copied);
        for (Map.Entry<String, Run> job : all.entrySet()) {
            if (chosen.matcher(job.getKey()).find()) {
                job.getValue().run(job.getKey());
            }
        }
    }

    /** A job that writes generated records. */
    private void generated(String name, int writers, Moment moment, boolean chained, int kills) throws Exception {
        long start = System.nanoTime();
        String topic = topic();
        Faults.arm(moment);
        JobClient job = start(name, environment(writers), chained, topic);
        Jobs.killWhilePassing(server, kills, RECORDS);
        finish(job, writers);
        end(name, topic, kills, start, moment != null && !Faults.failed() ? "the job did not fail" : "");
    }

    /**
     * A job that is cancelled behind the commit of a checkpoint, and started from it in a cluster that knows nothing of the
     * commit: the connector commits again, and must hear that this is well.
     */
    private void restored(String name) throws Exception {
        long start = System.nanoTime();
        String topic = topic();
        Path checkpoints = Files.createTempDirectory(scratch, "checkpoints");
        Faults.arm(null);
        JobClient first = start(name, Job.environment(1, checkpoints, null), true, topic);
        Jobs.awaitThat("three checkpoints are complete", () -> Faults.completed() >= 3);
        cancel(first);
        long complaints = Log.committerComplaints();
        finish(start(name, Job.environment(1, checkpoints, Job.newestCheckpoint(checkpoints)), true, topic), 1);
        complaints = Log.committerComplaints() - complaints;
        end(name, topic, 0, start, complaints == 0 ? "" : complaints + " repeated commits were refused");
    }

    /** A job that copies a topic. */
    private void copied(String name) throws Exception {
        long start = System.nanoTime();
        String from = topic() + "-from";
        String topic = topic();
        Records.fill(server.serviceUrl(), from, RECORDS);
        Faults.arm(Moment.COMPLETED);
        StreamExecutionEnvironment environment = environment(1);
        SingleOutputStreamOperator<String> records = Jobs.read(environment, server, from)
                .map(new Faults<String>(), Types.STRING);
        records.sinkTo(Job.sink(server.serviceUrl(), topic));
        Jobs.await(environment.executeAsync(name));
        end(name, topic, 0, start, !Faults.failed() ? "the job did not fail" : "");
    }

    private StreamExecutionEnvironment environment(int parallelism) throws Exception {
        return Job.environment(parallelism, Files.createTempDirectory(scratch, "checkpoints"), null);
    }

    /** Starts a job whose writers take the records in turns. It runs until it is cancelled. */
    private JobClient start(String name, StreamExecutionEnvironment environment, boolean chained, String topic) throws Exception {
        Finish.reset();
        int writers = environment.getParallelism();
        SingleOutputStreamOperator<String> text = environment.fromSequence(0, writers * ENDLESS - 1).uid("numbers")
                .map(number -> number % ENDLESS * writers + number / ENDLESS, Types.LONG).uid("records")
                .map(new Faults<Long>(), Types.LONG).uid("faults").filter(new Finish(RECORDS)).uid("finish")
                .map(number -> Long.toString(number), Types.STRING).uid("text");
        if (!chained) {
            text.startNewChain();
        }
        text.sinkTo(Job.sink(server.serviceUrl(), topic)).uid("sink");
        return environment.executeAsync(name);
    }

    private static void finish(JobClient job, int writers) throws Exception {
        Jobs.awaitThat("all records are committed", () -> Finish.reachedBy(writers));
        cancel(job);
    }

    private static void cancel(JobClient job) throws Exception {
        job.cancel().get();
        try {
            job.getJobExecutionResult().get(30, TimeUnit.SECONDS);
        } catch (ExecutionException e) {
            // Cancelled, as it should be.
        }
    }

    private String topic() {
        return "persistent://public/default/flink-sink-" + ended.size();
    }

    private void end(String name, String topic, int kills, long start, String broken) {
        int seconds = (int) TimeUnit.NANOSECONDS.toSeconds(System.nanoTime() - start);
        ended.add(new Ended(name, topic, Faults.failed() ? 1 : 0, kills, seconds, broken));
    }

    /** Counts what is in the topics. What failed jobs left open hides it for a while, so all jobs run before. */
    List<Row> rows() throws Exception {
        List<Row> rows = new ArrayList<>();
        for (Ended job : ended) {
            int[] counts = Records.count(server.serviceUrl(), job.topic, RECORDS);
            boolean once = Arrays.stream(counts).allMatch(count -> count == 1);
            String broken = job.broken.isEmpty() && !once ? "not each record once" : job.broken;
            rows.add(Row.of(job.job, counts, job.failures, job.kills, job.seconds, broken));
        }
        return rows;
    }
}
