package jobs;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;
import server.Server;

/** Runs jobs with Flink's Pulsar connector against a server, and prints what was counted. Exit code 1 if a promise is broken. */
public final class Main {
    public static void main(String[] args) throws Exception {
        if (args.length < 2 || args.length > 3) {
            System.err.println("usage: jobs.Main SERVER_BINARY SCRATCH_DIRECTORY [REGULAR_EXPRESSION_OF_NAMES]");
            System.exit(2);
        }
        Path scratch = Files.createDirectories(Path.of(args[1]).toAbsolutePath());
        Log.writeTo(scratch.resolve("flink.log"));
        Server server = new Server(Path.of(args[0]).toAbsolutePath(), Files.createTempDirectory(scratch, "server"));
        boolean kept = false;
        try (server) {
            List<Row> rows = rows(server, scratch, Pattern.compile(args.length == 3 ? args[2] : ""));
            System.out.println(Row.HEADING);
            rows.forEach(System.out::println);
            kept = rows.stream().allMatch(Row::kept);
        } catch (Exception | AssertionError e) {
            e.printStackTrace(System.out);
        }
        if (!kept) {
            System.out.println("server: " + String.join("\nserver: ", server.lines()));
        }
        System.exit(kept ? 0 : 1);
    }

    private static List<Row> rows(Server server, Path scratch, Pattern chosen) throws Exception {
        Sinks sinks = new Sinks(server, scratch);
        sinks.runAll(chosen);
        List<Row> rows = new ArrayList<>(new Sources(server, scratch).runAll(chosen));
        rows.addAll(sinks.rows());
        return rows;
    }

    private Main() {
    }
}
