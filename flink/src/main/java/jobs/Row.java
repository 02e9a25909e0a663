package jobs;

import java.util.Arrays;

/** What was counted of one job. */
record Row(String job, int records, int missing, int repeated, int failures, int kills, int seconds, String broken) {
    static final String HEADING = String.format("%-5s %-66s %7s %7s %8s %8s %5s %4s",
            "", "job", "records", "missing", "repeated", "failures", "kills", "s");

    /** The row of a job that brought each record this often; broken says which promise that breaks, and is empty if none. */
    static Row of(String job, int[] counts, int failures, int kills, int seconds, String broken) {
        int missing = (int) Arrays.stream(counts).filter(count -> count == 0).count();
        int repeated = (int) Arrays.stream(counts).filter(count -> count > 1).count();
        return new Row(job, counts.length, missing, repeated, failures, kills, seconds, broken);
    }

    boolean kept() {
        return broken.isEmpty();
    }

    @Override
    public String toString() {
        String line = String.format("%-5s %-66s %7d %7d %8d %8d %5d %4d",
                kept() ? "ok" : "FAIL", job, records, missing, repeated, failures, kills, seconds);
        return kept() ? line : line + System.lineSeparator() + "      " + broken;
    }
}
