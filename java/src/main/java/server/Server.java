package server;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** A pulsar-tc process on a data directory. Killed and started again, it has the ports that it had before. */
public final class Server implements AutoCloseable {
    private static final Pattern READY = Pattern.compile(" ready in \\d+ ms: pulsar://(\\S+):(\\d+) http://\\S+:(\\d+) ");
    private static final int START_SECONDS = 60;
    private static final int KEPT_LINES = 100;

    private final Path binary;
    private final Path dataDirectory;
    private final String[] settings;
    private final Deque<String> lines = new ArrayDeque<>(); // its own lock guards it
    private Process process;
    private int port;
    private int webPort;

    /** Starts a server and returns when it is ready. Settings have the form key=value. */
    public Server(Path binary, Path dataDirectory, String... settings) throws Exception {
        this.binary = binary;
        this.dataDirectory = dataDirectory;
        this.settings = settings;
        Runtime.getRuntime().addShutdownHook(new Thread(this::kill));
        start();
    }

    public String serviceUrl() {
        return "pulsar://localhost:" + port;
    }

    public String webUrl() {
        return "http://localhost:" + webPort;
    }

    /** Ends the process as kill -9 does and returns when it is gone. */
    public synchronized void kill() {
        process.destroyForcibly();
        process.onExit().join();
    }

    /** Kills the process and starts it again on the same data and ports. */
    public void restart() throws Exception {
        kill();
        start();
    }

    /** The last lines that the process wrote. */
    public List<String> lines() {
        synchronized (lines) {
            return new ArrayList<>(lines);
        }
    }

    @Override
    public void close() {
        kill();
    }

    private synchronized void start() throws Exception {
        List<String> command = new ArrayList<>(List.of(binary.toString(), "standalone", "--data-dir", dataDirectory.toString(),
                "--set", "brokerServicePort=" + port, "--set", "webServicePort=" + webPort));
        for (String setting : settings) {
            command.add("--set");
            command.add(setting);
        }
        process = new ProcessBuilder(command).redirectOutput(ProcessBuilder.Redirect.DISCARD).start();
        CompletableFuture<Matcher> ready = new CompletableFuture<>();
        Process started = process;
        Thread follower = new Thread(() -> follow(started, ready), "server output");
        follower.setDaemon(true);
        follower.start();
        Matcher line = ready.get(START_SECONDS, TimeUnit.SECONDS);
        port = Integer.parseInt(line.group(2));
        webPort = Integer.parseInt(line.group(3));
    }

    private void follow(Process started, CompletableFuture<Matcher> ready) {
        try (BufferedReader output = new BufferedReader(new InputStreamReader(started.getErrorStream(), StandardCharsets.UTF_8))) {
            for (String line = output.readLine(); line != null; line = output.readLine()) {
                keep(line);
                Matcher matcher = READY.matcher(line);
                if (matcher.find()) {
                    ready.complete(matcher);
                }
            }
        } catch (IOException e) {
            keep("its output cannot be read: " + e);
        }
        ready.completeExceptionally(new IllegalStateException("the server ended: " + String.join("\n", lines())));
    }

    private void keep(String line) {
        synchronized (lines) {
            if (lines.size() == KEPT_LINES) {
                lines.removeFirst();
            }
            lines.addLast(line);
        }
    }
}
