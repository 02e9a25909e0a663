package workload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/pulsar-tc/pulsar-tc/internal/history"
	"github.com/pulsar-tc/pulsar-tc/internal/wireclient"
	"github.com/pulsar-tc/pulsar-tc/internal/wiretopic"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// lifeNamespace holds topics that come and go.
const lifeNamespace = "public/life"

// fate is what became of something: nobody asked for it, nobody knows, it is done.
type fate uint8

const (
	never fate = iota
	unknown
	done
)

// life is what a topic went through.
type life struct {
	topic string

	sent, subscribed, unsubscribed, terminated, deleted fate
}

// lifeWorker makes topics with a subscription, deletes that while a transaction ends in which it acknowledged, terminates the topics
// and deletes them; what was answered stays true.
type lifeWorker struct {
	*Load

	mu    sync.Mutex // guards the following
	lives []*life
}

// fateOf is what an answer tells. A refusal is none here: every step is allowed.
func (w *lifeWorker) fateOf(topic, step string, err error) fate {
	var refused *wireclient.ServerError
	switch {
	case err == nil:
		return done
	case errors.As(err, &refused) && !retried(refused.Code):
		w.t.Errorf("%s: %s: %v", topic, step, err)
	}
	return unknown
}

// retried reports whether clients try again after a refusal.
func retried(code pulsarproto.ServerError) bool {
	return code == pulsarproto.ServerError_ServiceNotReady || code == pulsarproto.ServerError_PersistenceError
}

// session lives the lives of topics until its server goes.
func (w *lifeWorker) session(ctx context.Context) error {
	router, closeQuietly := w.route()
	defer closeQuietly()
	for ctx.Err() == nil {
		l := &life{topic: "persistent://" + lifeNamespace + "/" + w.key()}
		w.mu.Lock()
		w.lives = append(w.lives, l)
		w.mu.Unlock()
		if err := w.live(ctx, router, l); err != nil {
			return err
		}
		Pause(ctx, burst*feedPause)
	}
	return nil
}

func (w *lifeWorker) live(ctx context.Context, router *wiretopic.Router, l *life) error {
	ctx, cancel := w.request(ctx)
	defer cancel()
	producer, err := router.Produce(ctx, l.topic)
	if err == nil {
		_, err = producer.Send(ctx, "m", nil)
		l.sent = w.fateOf(l.topic, "SEND", err)
	}
	if err != nil {
		return err
	}
	consumer, err := router.Subscribe(ctx, l.topic, "s")
	if l.subscribed = w.fateOf(l.topic, "SUBSCRIBE", err); err != nil {
		return err
	}
	if rand.IntN(2) == 0 {
		err = w.unsubscribe(ctx, router, consumer, l)
	} else {
		err = consumer.Close(ctx)
	}
	if err := errors.Join(err, producer.Close(ctx)); err != nil {
		return err
	}
	path := "persistent/" + l.topic[len("persistent://"):]
	if rand.IntN(2) == 0 {
		if l.terminated, err = w.ask(ctx, http.MethodPost, path+"/terminate", ""); err != nil {
			return err
		}
	}
	if rand.IntN(10) > 0 { // else it stays
		l.deleted, err = w.ask(ctx, http.MethodDelete, path+"?force=true", "")
	}
	return err
}

// unsubscribe acknowledges the message in a transaction, and ends that while the subscription is deleted.
func (w *lifeWorker) unsubscribe(ctx context.Context, router *wiretopic.Router, consumer *wiretopic.Consumer, l *life) error {
	message, err := consumer.Receive(ctx)
	if err != nil {
		return err
	}
	id, err := w.begin(ctx, router, w.ttl(), "")
	if err != nil {
		return err
	}
	if err := consumer.Ack(ctx, message.ID, &id); answerOf(err) == history.Unknown {
		w.unsettled <- id
		l.unsubscribed = unknown // its message may be acknowledged
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- w.end(ctx, router, id, txn.Action(rand.IntN(2)), "") }()
	err = consumer.Unsubscribe(ctx)
	l.unsubscribed = w.fateOf(l.topic, "UNSUBSCRIBE", err)
	return errors.Join(err, <-ended)
}

// ask asks Pulsar's admin REST for something that is allowed.
func (l *Load) ask(ctx context.Context, method, path, body string) (fate, error) {
	asked, err := http.NewRequestWithContext(ctx, method, l.webURL()+"/admin/v2/"+path, strings.NewReader(body))
	if err != nil {
		return never, err
	}
	asked.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(asked)
	if err != nil {
		return unknown, err
	}
	defer response.Body.Close()
	switch {
	case response.StatusCode/100 == 2:
		return done, nil
	case response.StatusCode/100 == 4:
		l.t.Errorf("%s %s: %s", method, path, response.Status)
	}
	return unknown, fmt.Errorf("%s %s: %s", method, path, response.Status)
}

// verify compares what the topics went through with what there is in the end.
func (w *lifeWorker) verify(ctx context.Context, router *wiretopic.Router) {
	w.t.Helper()
	var topics []string
	response, err := http.Get(w.webURL() + "/admin/v2/persistent/" + lifeNamespace)
	if err == nil {
		err = errors.Join(json.NewDecoder(response.Body).Decode(&topics), response.Body.Close())
	}
	if err != nil {
		w.t.Fatalf("topics of %s: %v", lifeNamespace, err)
	}
	counts := map[string]int{}
	for _, l := range w.lives {
		exists := slices.Contains(topics, l.topic)
		switch {
		case l.deleted == done && exists:
			w.t.Errorf("%s is there although its deletion was answered", l.topic)
		case l.deleted == never && l.sent == done && !exists:
			w.t.Errorf("%s is lost", l.topic)
		case l.deleted == never && exists:
			w.verifyOne(ctx, router, l)
			counts["stay"]++
		}
		if l.unsubscribed == done {
			counts["unsubscribed"]++
		}
		if l.deleted == done {
			counts["deleted"]++
		}
	}
	w.t.Logf("%d topics lived: %v", len(w.lives), counts)
}

func (w *lifeWorker) verifyOne(ctx context.Context, router *wiretopic.Router, l *life) {
	w.t.Helper()
	if l.unsubscribed == done {
		w.verifyUnsubscribed(ctx, l)
	}
	if l.subscribed == done && l.sent == done && l.unsubscribed == never {
		client, err := router.Topic(ctx, l.topic)
		if err != nil {
			w.t.Fatal(err)
		}
		consumer, err := client.SubscribeAs(ctx, &pulsarproto.CommandSubscribe{ // at the latest if it were new
			Topic: &l.topic, Subscription: proto.String("s"), SubType: pulsarproto.CommandSubscribe_Shared.Enum(),
		})
		if err != nil {
			w.t.Fatalf("subscribe to %s: %v", l.topic, err)
		}
		if m, err := consumer.Receive(ctx); err != nil || m.Content != "m" {
			w.t.Errorf("%s: its subscription has %q, %v", l.topic, m.Content, err)
		}
		if err := consumer.Close(ctx); err != nil {
			w.t.Errorf("%s: %v", l.topic, err)
		}
	}
	_, err := router.Produce(ctx, l.topic)
	var refused *wireclient.ServerError
	terminated := errors.As(err, &refused) && refused.Code == pulsarproto.ServerError_TopicTerminatedError
	if l.terminated == done && !terminated || l.terminated == never && err != nil {
		w.t.Errorf("%s, terminated %d: a producer hears %v", l.topic, l.terminated, err)
	}
}

func (w *lifeWorker) verifyUnsubscribed(ctx context.Context, l *life) {
	w.t.Helper()
	asked, err := http.NewRequestWithContext(ctx, http.MethodGet, w.webURL()+"/admin/v2/persistent/"+l.topic[len("persistent://"):]+"/subscriptions", http.NoBody)
	if err != nil {
		w.t.Fatal(err)
	}
	var subscriptions []string
	response, err := http.DefaultClient.Do(asked)
	if err == nil {
		err = errors.Join(json.NewDecoder(response.Body).Decode(&subscriptions), response.Body.Close())
	}
	if err != nil {
		w.t.Fatalf("subscriptions of %s: %v", l.topic, err)
	}
	if len(subscriptions) > 0 {
		w.t.Errorf("%s has %q although the deletion was answered", l.topic, subscriptions)
	}
}
