package registry

import (
	"context"
	"fmt"
	"sync"

	"github.com/pulsar-tc/pulsar-tc/keyspace"
)

// turns lets one caller at a time through for each topic. Who waits for a token of all topics is then one per topic, however many
// schemas are brought to one of them: a topic with schemas that take long to compare holds up its own clients only.
type turns struct {
	mu      sync.Mutex // guards the rest
	byTopic map[keyspace.Schemas]*turn
}

type turn struct {
	token chan struct{} // is in it while somebody has the turn
	users int           // who has it, and who waits
}

// take returns when the caller has the topic's turn; it must be given back.
func (t *turns) take(ctx context.Context, topic keyspace.Schemas) (giveBack func(), err error) {
	mine := t.join(topic)
	select {
	case mine.token <- struct{}{}:
		return func() {
			<-mine.token
			t.leave(topic, mine)
		}, nil
	case <-ctx.Done():
		t.leave(topic, mine)
		return nil, fmt.Errorf("wait to check a schema: %w", context.Cause(ctx))
	}
}

func (t *turns) join(topic keyspace.Schemas) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	mine := t.byTopic[topic]
	if mine == nil {
		mine = &turn{token: make(chan struct{}, 1)}
		t.byTopic[topic] = mine
	}
	mine.users++
	return mine
}

func (t *turns) leave(topic keyspace.Schemas, mine *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if mine.users--; mine.users == 0 {
		delete(t.byTopic, topic)
	}
}
