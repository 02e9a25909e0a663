package jobs;

import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.state.CheckpointListener;
import org.apache.flink.runtime.state.FunctionInitializationContext;
import org.apache.flink.runtime.state.FunctionSnapshotContext;
import org.apache.flink.streaming.api.checkpoint.CheckpointedFunction;

/**
 * Passes records on slowly, and makes the job fail. One job runs at a time, in this process, so what it is
 * to do and what it did are static.
 */
final class Faults<T> extends RichMapFunction<T, T> implements CheckpointedFunction, CheckpointListener {
    /** When the job fails. */
    enum Moment {
        /** While a checkpoint is taken, which therefore never completes. */
        CHECKPOINT,
        /** When the job hears that a checkpoint is complete. A chained sink has committed it by then, another one is about to. */
        COMPLETED
    }

    private static final long serialVersionUID = 1;
    private static final long RECORD_NANOS = 1_000_000;
    /** Of a record before the failure, so that the job does not end without it. */
    private static final long SLOW_NANOS = 4_000_000;
    /** Checkpoints that a job completes before it fails. */
    private static final int QUIET_CHECKPOINTS = 2;

    private static volatile Moment moment;
    private static final AtomicBoolean armed = new AtomicBoolean();
    private static final AtomicBoolean failed = new AtomicBoolean();
    private static final AtomicInteger passed = new AtomicInteger();
    private static final AtomicInteger completed = new AtomicInteger();

    /** Prepares for the next job: it fails once at this moment, and never if it is null. */
    static void arm(Moment at) {
        moment = at;
        armed.set(at != null);
        failed.set(false);
        passed.set(0);
        completed.set(0);
    }

    /** Whether the job has failed. */
    static boolean failed() {
        return failed.get();
    }

    /** How many records were passed on, repeated ones included. */
    static int passed() {
        return passed.get();
    }

    /** How many checkpoints the job has heard to be complete. */
    static int completed() {
        return completed.get();
    }

    @Override
    public T map(T record) {
        LockSupport.parkNanos(armed.get() ? SLOW_NANOS : RECORD_NANOS);
        passed.incrementAndGet();
        return record;
    }

    @Override
    public void initializeState(FunctionInitializationContext context) {
        // Nothing is kept.
    }

    @Override
    public void snapshotState(FunctionSnapshotContext context) {
        if (moment == Moment.CHECKPOINT) {
            failIfDue("while checkpoint " + context.getCheckpointId() + " is taken");
        }
    }

    @Override
    public void notifyCheckpointComplete(long id) {
        completed.incrementAndGet();
        if (moment == Moment.COMPLETED) {
            failIfDue("when checkpoint " + id + " is complete");
        }
    }

    private void failIfDue(String when) {
        if (completed.get() < QUIET_CHECKPOINTS || !armed.compareAndSet(true, false)) {
            return;
        }
        failed.set(true);
        throw new IllegalStateException("the job is meant to fail " + when);
    }
}
