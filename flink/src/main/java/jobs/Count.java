package jobs;

import java.util.BitSet;
import java.util.HashMap;
import java.util.Map;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.state.CheckpointListener;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.runtime.state.FunctionInitializationContext;
import org.apache.flink.runtime.state.FunctionSnapshotContext;
import org.apache.flink.streaming.api.checkpoint.CheckpointedFunction;

/** Counts each record, which is a number, in state that a restored job takes from its checkpoint. */
final class Count extends RichMapFunction<String, String> implements CheckpointedFunction, CheckpointListener {
    private static final long serialVersionUID = 1;

    private static volatile int[] newest;
    private static volatile BitSet inCheckpoint = new BitSet();

    private final int records;
    private int[] counts;
    private transient ListState<int[]> state;
    private transient Map<Long, BitSet> taken;

    Count(int records) {
        this.records = records;
    }

    /** How often each record was counted. */
    static int[] counts() {
        return newest.clone();
    }

    /** The records of the newest checkpoint that is complete. */
    static BitSet inCheckpoint() {
        return inCheckpoint;
    }

    @Override
    public void initializeState(FunctionInitializationContext context) throws Exception {
        state = context.getOperatorStateStore().getListState(new ListStateDescriptor<>("counts", int[].class));
        taken = new HashMap<>();
        counts = new int[records];
        for (int[] stored : state.get()) {
            counts = stored.clone();
        }
        newest = counts;
        inCheckpoint = seen();
    }

    @Override
    public String map(String record) {
        counts[Integer.parseInt(record)]++;
        return record;
    }

    @Override
    public void snapshotState(FunctionSnapshotContext context) throws Exception {
        state.clear();
        state.add(counts.clone());
        taken.put(context.getCheckpointId(), seen());
    }

    @Override
    public void notifyCheckpointComplete(long id) {
        inCheckpoint = taken.remove(id);
    }

    private BitSet seen() {
        BitSet seen = new BitSet(records);
        for (int i = 0; i < records; i++) {
            seen.set(i, counts[i] > 0);
        }
        return seen;
    }
}
