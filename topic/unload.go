package topic

import (
	"context"

	"github.com/pulsar-tc/pulsar-tc/topicname"
)

// Unload answers what waits in a loaded topic, as long as ctx allows, disconnects its clients and takes it out of memory. The
// next use loads it again; among several instances the one that is to serve it does. A topic that is not loaded is unloaded already.
// Errors: ErrTopicNotFound, *NotOwnerError.
func (ts *Topics) Unload(ctx context.Context, name topicname.Name) error {
	t := ts.loaded(name.String())
	if t == nil {
		return ts.unloaded(ctx, name)
	}
	t.ask(func(alive bool) {
		if alive {
			t.unload()
		}
	})
	t.awaitClose(ctx)
	return nil
}

// UnloadUnused is Unload for a topic to which nobody is connected. Errors: ErrTopicBusy.
func (ts *Topics) UnloadUnused(ctx context.Context, name topicname.Name) error {
	t := ts.loaded(name.String())
	if t == nil {
		return ts.unloaded(ctx, name)
	}
	closed, err := ts.closeForRemoval(ctx, []doomed{{name: name, open: t}}, removal{names: []topicname.Name{name}})
	for _, t := range closed {
		t.awaitClose(ctx)
	}
	return err
}

// awaitClose returns when the topic has left memory. What waits is answered, as long as ctx allows.
func (t *Topic) awaitClose(ctx context.Context) {
	closed := make(chan struct{})
	t.drain(func() { close(closed) })
	select {
	case <-closed:
	case <-ctx.Done():
		t.abandon(errClosing)
		<-closed
	}
}

// unloaded tells what is to be told about unloading a topic that is not loaded here.
func (ts *Topics) unloaded(ctx context.Context, name topicname.Name) error {
	exists, err := ts.TopicExists(ctx, name)
	if err == nil && !exists {
		err = ErrTopicNotFound
	}
	if err != nil {
		return err
	}
	return ts.servedElsewhere(ctx, name)
}

// leaving reports whether the topic takes no more clients.
func (t *Topic) leaving() bool { return t.removing || t.unloading }

// unload takes nothing more from clients. Consumers go at once; producers stay for the receipts of what they have sent, and what
// they send from now on is dropped without an answer: they send it again behind the reconnect.
func (t *Topic) unload() {
	t.unloading = true
	for _, s := range t.subscriptions {
		s.disconnect(nil)
	}
}
