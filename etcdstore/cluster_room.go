package etcdstore

import (
	"slices"
	"strings"
	"sync/atomic"

	"github.com/rs/zerolog"
)

const (
	// dataShare and mostDataReserve are the part of a cluster's quota below which data is refused, and its most.
	dataShare       = 4
	mostDataReserve = 512 * mebibyte
	// noSpace is what the text of etcd's alarm has in it. Source: etcdserverpb, AlarmType.
	noSpace = "NOSPACE"
)

// clusterRoom is what was seen of the room in a cluster. Reserves are refused in the same order as those of an embedded store,
// but others write there, too, and a look comes late: what is left over is etcd's own alarm, behind which nothing is stored.
type clusterRoom struct {
	request int64 // the largest one, in bytes
	log     zerolog.Logger

	state    atomic.Uint32
	changed  chan struct{}
	refusals atomic.Int64 // writes that etcd has refused for lack of space
	revision atomic.Int64 // the newest one seen
	live     atomic.Int64 // bytes in use, the most of any member

	logged Space // used by see
}

func newClusterRoom(requestBytes int, log zerolog.Logger) *clusterRoom {
	return &clusterRoom{request: int64(requestBytes), log: log, changed: make(chan struct{}, 1)}
}

// refused is told of each write that etcd refused for lack of space.
func (r *clusterRoom) refused() {
	r.refusals.Add(1)
	r.set(RefuseEnd)
}

func (r *clusterRoom) set(state Space) {
	if r.state.Swap(uint32(state)) == uint32(state) {
		return
	}
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// see takes what members said that were asked when refusals were so many. The one with the least room counts.
func (r *clusterRoom) see(answers []answer, refusals int64) {
	if len(answers) == 0 {
		return
	}
	now, alarm, live := Normal, "", int64(1)
	for _, a := range answers {
		if a.err != nil {
			continue
		}
		now, live = max(now, r.judge(a)), max(live, a.status.DbSizeInUse)
		if text := a.alarm(); text != "" {
			now, alarm = RefuseEnd, text
		}
		r.revision.Store(max(r.revision.Load(), a.status.Header.GetRevision()))
	}
	r.live.Store(live)
	if r.refusals.Load() != refusals {
		now = RefuseEnd
	}
	r.set(now)
	r.tell(now, alarm)
}

// alarm is the text of the alarm that locks the cluster for lack of space, or empty.
func (a *answer) alarm() string {
	if a.err != nil {
		return ""
	}
	for _, text := range a.status.Errors {
		if strings.Contains(text, noSpace) {
			return text
		}
	}
	return ""
}

func alarmed(answers []answer) bool {
	return slices.ContainsFunc(answers, func(a answer) bool { return a.alarm() != "" })
}

// judge compares a member's quota with the bytes in use, and with the size of its file: etcd counts that, free pages included,
// and raises its alarm when a request would not fit behind it.
func (r *clusterRoom) judge(a answer) Space {
	quota, size, live := a.status.DbSizeQuota, a.status.DbSize, a.status.DbSizeInUse
	if quota <= 0 {
		return Normal // off, or a member too old to say
	}
	reserve := min(mostDataReserve, quota/dataShare)
	state := reserves{reserve, reserve / 2}.judge(quota - live)
	if quota-size < 2*r.request {
		state = max(state, RefuseNew)
	}
	return state
}

func (r *clusterRoom) tell(now Space, alarm string) {
	if now == r.logged {
		return
	}
	r.logged = now
	event := r.log.Warn()
	if now == Normal {
		event = r.log.Info()
	}
	event.Stringer("space", now).Str("refused", now.refused()).Int64("live", r.live.Load()).Str("alarm", alarm).
		Msg("space of the etcd cluster changed: behind an alarm it has to be compacted, defragmented and disarmed")
}
