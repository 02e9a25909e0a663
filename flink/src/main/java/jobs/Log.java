package jobs;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;

/** What Flink, its connector and the client inside it log. */
final class Log {
    private static Path file;

    /** Must be called before anything is logged. */
    static void writeTo(Path path) {
        file = path;
        System.setProperty("org.slf4j.simpleLogger.logFile", path.toString());
        System.setProperty("org.slf4j.simpleLogger.defaultLogLevel", "warn");
        System.setProperty("org.slf4j.simpleLogger.showDateTime", "true");
        System.setProperty("org.slf4j.simpleLogger.dateTimeFormat", "HH:mm:ss.SSS");
    }

    /** How often the connector has complained of an answer to its commits. */
    static long committerComplaints() throws Exception {
        if (!Files.exists(file)) {
            return 0;
        }
        try (Stream<String> lines = Files.lines(file)) {
            return lines.filter(line -> line.contains(" org.apache.flink.connector.pulsar.sink.committer.")).count();
        }
    }

    private Log() {
    }
}
