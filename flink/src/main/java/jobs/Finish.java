package jobs;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.flink.api.common.functions.RichFilterFunction;
import org.apache.flink.api.common.state.CheckpointListener;
import org.apache.flink.runtime.state.FunctionInitializationContext;
import org.apache.flink.runtime.state.FunctionSnapshotContext;
import org.apache.flink.streaming.api.checkpoint.CheckpointedFunction;

/**
 * Lets the first records of a stream pass and drops the endless rest, so that a job goes on until all it wrote is committed,
 * and is then cancelled. A stream that ends would do, but for FLINK-25920: a sink that is restored at its end fails for ever.
 */
final class Finish extends RichFilterFunction<Long> implements CheckpointedFunction, CheckpointListener {
    private static final long serialVersionUID = 1;

    private static final Set<Integer> finished = ConcurrentHashMap.newKeySet();

    private final int records;
    private boolean past;
    private long checkpointOfAll;

    Finish(int records) {
        this.records = records;
    }

    /** Prepares for the next job. */
    static void reset() {
        finished.clear();
    }

    /** Whether everything that so many parallel instances let pass is committed. */
    static boolean reachedBy(int instances) {
        return finished.size() == instances;
    }

    @Override
    public boolean filter(Long record) {
        past |= record >= records;
        return record < records;
    }

    @Override
    public void initializeState(FunctionInitializationContext context) {
        past = false;
        checkpointOfAll = Long.MAX_VALUE;
        finished.remove(getRuntimeContext().getIndexOfThisSubtask());
    }

    @Override
    public void snapshotState(FunctionSnapshotContext context) {
        if (past && checkpointOfAll == Long.MAX_VALUE) {
            checkpointOfAll = context.getCheckpointId();
        }
    }

    /** The checkpoint behind that of all records tells that theirs was not only completed, but committed. */
    @Override
    public void notifyCheckpointComplete(long id) {
        if (id > checkpointOfAll) {
            finished.add(getRuntimeContext().getIndexOfThisSubtask());
        }
    }
}
