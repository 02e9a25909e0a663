package jobs;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;
import org.apache.flink.api.common.restartstrategy.RestartStrategies;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.configuration.CheckpointingOptions;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.pulsar.sink.PulsarSink;
import org.apache.flink.connector.pulsar.sink.PulsarSinkOptions;
import org.apache.flink.connector.pulsar.source.PulsarSource;
import org.apache.flink.connector.pulsar.source.enumerator.cursor.StartCursor;
import org.apache.flink.connector.pulsar.source.enumerator.cursor.StopCursor;
import org.apache.flink.runtime.jobgraph.SavepointConfigOptions;
import org.apache.flink.streaming.api.CheckpointingMode;
import org.apache.flink.streaming.api.environment.CheckpointConfig.ExternalizedCheckpointCleanup;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/** Parts of jobs, each in a MiniCluster of its own. */
final class Job {
    /**
     * Of the sink's transactions: the connector never aborts, so that readers wait this long for what a failed job left open;
     * and a restored job must commit within it.
     */
    static final long TRANSACTION_MILLIS = 20_000;

    private static final int CHECKPOINT_MILLIS = 300;
    private static final int RESTARTS = 20;
    private static final int RESTART_MILLIS = 100;

    /** An environment whose job writes checkpoints to a directory, and starts from one unless it is null. */
    static StreamExecutionEnvironment environment(int parallelism, Path checkpoints, Path from) {
        Configuration configuration = new Configuration();
        configuration.set(CheckpointingOptions.CHECKPOINTS_DIRECTORY, checkpoints.toUri().toString());
        if (from != null) {
            configuration.set(SavepointConfigOptions.SAVEPOINT_PATH, from.toUri().toString());
        }
        StreamExecutionEnvironment environment = StreamExecutionEnvironment.createLocalEnvironment(parallelism, configuration);
        environment.enableCheckpointing(CHECKPOINT_MILLIS, CheckpointingMode.EXACTLY_ONCE);
        environment.getCheckpointConfig().setExternalizedCheckpointCleanup(ExternalizedCheckpointCleanup.RETAIN_ON_CANCELLATION);
        environment.setRestartStrategy(RestartStrategies.fixedDelayRestart(RESTARTS, RESTART_MILLIS));
        return environment;
    }

    /** The newest complete checkpoint that a cancelled job has left in a directory. */
    static Path newestCheckpoint(Path checkpoints) throws Exception {
        try (Stream<Path> files = Files.walk(checkpoints)) {
            return files.filter(file -> file.endsWith("_metadata")).map(Path::getParent)
                    .max(Comparator.comparing(Job::number)).orElseThrow();
        }
    }

    private static int number(Path checkpoint) {
        return Integer.parseInt(checkpoint.getFileName().toString().replace("chk-", ""));
    }

    static PulsarSink<String> sink(String serviceUrl, String topic) {
        return PulsarSink.builder().setServiceUrl(serviceUrl).setTopics(topic)
                .setSerializationSchema(new SimpleStringSchema()).setDeliveryGuarantee(DeliveryGuarantee.EXACTLY_ONCE)
                .setConfig(PulsarSinkOptions.PULSAR_WRITE_TRANSACTION_TIMEOUT, TRANSACTION_MILLIS).build();
    }

    /** A source that ends with the message that is the last one when the job starts. */
    static PulsarSource<String> source(String serviceUrl, String topic) {
        return PulsarSource.builder().setServiceUrl(serviceUrl).setTopics(List.of(topic)).setSubscriptionName("flink")
                .setStartCursor(StartCursor.earliest()).setBoundedStopCursor(StopCursor.latest())
                .setDeserializationSchema(new SimpleStringSchema()).build();
    }

    private Job() {
    }
}
