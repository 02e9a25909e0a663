package peer

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pulsar-tc/pulsar-tc/cluster"
	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

var (
	testID    = txn.ID{Most: 3, Least: 7}
	testTopic = txn.Participant{Topic: "persistent://public/default/t"}
	testSub   = txn.Participant{Topic: "persistent://public/default/t", Subscription: "s", Kind: txn.AckedSubscription}
)

// request is one of the commands of the pool, and the error that it ended with.
type request struct {
	name string
	// start sends it; err is told its outcome.
	start func(ctx context.Context, p *Pool, to cluster.Instance, caller cnx.Caller, err chan<- error)
	// participant tells END_TXN_ON_*, which have no caller.
	participant bool
}

var requests = []request{
	{"NEW_TXN", func(ctx context.Context, p *Pool, to cluster.Instance, caller cnx.Caller, ended chan<- error) {
		p.NewTxn(ctx, to, testID.Most, caller, 5000, "", true, func(id txn.ID, err error) {
			if err == nil && id != testID {
				err = fmt.Errorf("opened %v", id)
			}
			ended <- err
		})
	}, false},
	{"ADD_PARTITION_TO_TXN", func(ctx context.Context, p *Pool, to cluster.Instance, caller cnx.Caller, ended chan<- error) {
		p.AddParticipants(ctx, to, testID, caller, []txn.Participant{testTopic}, func(err error) { ended <- err })
	}, false},
	{"ADD_SUBSCRIPTION_TO_TXN", func(ctx context.Context, p *Pool, to cluster.Instance, caller cnx.Caller, ended chan<- error) {
		p.AddParticipants(ctx, to, testID, caller, []txn.Participant{testSub}, func(err error) { ended <- err })
	}, false},
	{"END_TXN", func(ctx context.Context, p *Pool, to cluster.Instance, caller cnx.Caller, ended chan<- error) {
		p.EndTxn(ctx, to, testID, caller, txn.Abort, true, func(err error) { ended <- err })
	}, false},
	{"END_TXN_ON_PARTITION", func(ctx context.Context, p *Pool, to cluster.Instance, _ cnx.Caller, ended chan<- error) {
		p.EndOnParticipant(ctx, to, testID, testTopic, txn.Commit, 1<<64-1, func(err error) { ended <- err })
	}, true},
	{"END_TXN_ON_SUBSCRIPTION", func(ctx context.Context, p *Pool, to cluster.Instance, _ cnx.Caller, ended chan<- error) {
		p.EndOnParticipant(ctx, to, testID, testSub, txn.Abort, 5, func(err error) { ended <- err })
	}, true},
}

// answer answers any of the commands: with success, or with an error if code is not nil. It complains if something of the
// command was lost on the way.
func answer(d *door, command *pulsarproto.BaseCommand, code *pulsarproto.ServerError, text string) error {
	check := func(ok bool) error {
		if !ok {
			return fmt.Errorf("%s arrived as %v", command.GetType(), command)
		}
		return nil
	}
	reply := func(requestID uint64, done func([]byte, uint64, uint64, uint64) []byte,
		failed func([]byte, uint64, uint64, uint64, pulsarproto.ServerError, string) []byte) {
		if code != nil {
			d.send(failed(nil, requestID, testID.Most, testID.Least, *code, text))
			return
		}
		d.send(done(nil, requestID, testID.Most, testID.Least))
	}
	is := func(most, least uint64) bool { return (txn.ID{Most: most, Least: least}) == testID }
	switch command.GetType() {
	case pulsarproto.BaseCommand_NEW_TXN:
		c := command.GetNewTxn()
		reply(c.GetRequestId(), pulsarproto.AppendNewTxnResponse, func(b []byte, id, most, _ uint64, code pulsarproto.ServerError, text string) []byte {
			return pulsarproto.AppendNewTxnError(b, id, most, code, text)
		})
		return check(c.GetTcId() == testID.Most && c.GetTxnTtlSeconds() == 5000 && c.ClientName != nil && c.GetClientName() == "")
	case pulsarproto.BaseCommand_ADD_PARTITION_TO_TXN:
		c := command.GetAddPartitionToTxn()
		reply(c.GetRequestId(), pulsarproto.AppendAddPartitionToTxnResponse, pulsarproto.AppendAddPartitionToTxnError)
		return check(is(c.GetTxnidMostBits(), c.GetTxnidLeastBits()) && c.GetPartitions()[0] == testTopic.Topic)
	case pulsarproto.BaseCommand_ADD_SUBSCRIPTION_TO_TXN:
		c := command.GetAddSubscriptionToTxn()
		reply(c.GetRequestId(), pulsarproto.AppendAddSubscriptionToTxnResponse, pulsarproto.AppendAddSubscriptionToTxnError)
		return check(is(c.GetTxnidMostBits(), c.GetTxnidLeastBits()) && c.GetSubscription()[0].GetSubscription() == testSub.Subscription)
	case pulsarproto.BaseCommand_END_TXN:
		c := command.GetEndTxn()
		reply(c.GetRequestId(), pulsarproto.AppendEndTxnResponse, pulsarproto.AppendEndTxnError)
		return check(is(c.GetTxnidMostBits(), c.GetTxnidLeastBits()) && c.GetTxnAction() == pulsarproto.TxnAction_ABORT && c.ClientName != nil)
	case pulsarproto.BaseCommand_END_TXN_ON_PARTITION:
		c := command.GetEndTxnOnPartition()
		reply(c.GetRequestId(), pulsarproto.AppendEndTxnOnPartitionResponse, pulsarproto.AppendEndTxnOnPartitionError)
		return check(is(c.GetTxnidMostBits(), c.GetTxnidLeastBits()) && c.GetTxnidLeastBitsOfLowWatermark() == 1<<64-1 &&
			c.GetTxnAction() == pulsarproto.TxnAction_COMMIT && c.GetTopic() == testTopic.Topic)
	case pulsarproto.BaseCommand_END_TXN_ON_SUBSCRIPTION:
		c := command.GetEndTxnOnSubscription()
		reply(c.GetRequestId(), pulsarproto.AppendEndTxnOnSubscriptionResponse, pulsarproto.AppendEndTxnOnSubscriptionError)
		return check(is(c.GetTxnidMostBits(), c.GetTxnidLeastBits()) && c.GetTxnidLeastBitsOfLowWatermark() == 5 &&
			c.GetTxnAction() == pulsarproto.TxnAction_ABORT && c.GetSubscription().GetSubscription() == testSub.Subscription)
	}
	return check(false)
}

func TestAnswers(t *testing.T) {
	for _, r := range requests {
		t.Run(r.name, func(t *testing.T) {
			other := newInstance(t, "b")
			other.serve = func(d *door, command *pulsarproto.BaseCommand) {
				if err := answer(d, command, nil, ""); err != nil {
					t.Error(err)
				}
			}
			pool, ended := newPool(t, nil), make(chan error, 1)
			r.start(t.Context(), pool, other.info(), cnx.Caller{}, ended)
			if err := wait(t, ended); err != nil {
				t.Errorf("ended in %v", err)
			}
		})
	}
}

// Every code comes out as the error of package txn that has it, with code and text unchanged for whoever passes it on.
func TestErrorsByCode(t *testing.T) {
	is := func(target error) func(error) bool { return func(err error) bool { return errors.Is(err, target) } }
	var notFound *txn.NotFoundError
	var status *txn.StatusError
	for code, matches := range map[pulsarproto.ServerError]func(error) bool{
		pulsarproto.ServerError_TransactionCoordinatorNotFound: is(txn.ErrCoordinatorNotFound),
		pulsarproto.ServerError_ServiceNotReady:                is(txn.ErrNotReady),
		pulsarproto.ServerError_TooManyRequests:                is(txn.ErrTooManyRequests),
		pulsarproto.ServerError_NotAllowedError:                is(txn.ErrNotAllowed),
		pulsarproto.ServerError_InvalidTopicName:               is(txn.ErrInvalidTopicName),
		pulsarproto.ServerError_TransactionConflict:            is(txn.ErrConflict),
		pulsarproto.ServerError_TransactionPreserverClosed:     is(txn.ErrPreserverClosed),
		pulsarproto.ServerError_UnsupportedVersionError:        is(txn.ErrUnsupportedVersion),
		pulsarproto.ServerError_TransactionNotFound: func(err error) bool {
			return errors.As(err, &notFound) && notFound.ID.Most == testID.Most
		},
		pulsarproto.ServerError_InvalidTxnStatus: func(err error) bool { return errors.As(err, &status) && status.ID == testID },
		pulsarproto.ServerError_UnknownError:     func(err error) bool { return errors.Unwrap(err) == nil },
	} {
		t.Run(code.String(), func(t *testing.T) {
			other := newInstance(t, "b")
			other.serve = func(d *door, command *pulsarproto.BaseCommand) {
				if err := answer(d, command, &code, "because"); err != nil {
					t.Error(err)
				}
			}
			pool := newPool(t, nil)
			for _, r := range requests {
				if code == pulsarproto.ServerError_InvalidTxnStatus && r.name == "NEW_TXN" {
					continue // its answer names no transaction
				}
				ended := make(chan error, 1)
				r.start(t.Context(), pool, other.info(), cnx.Caller{}, ended)
				err := wait(t, ended)
				var refusal *Refusal
				if !matches(err) || !errors.As(err, &refusal) || refusal.ServerError() != code || err.Error() != "because" {
					t.Errorf("%s ended in %v", r.name, err)
				}
			}
		})
	}
}

// A connection that is cut leaves what was asked unknown: it says so, and the next request has a connection of its own.
func TestCutInTheMiddle(t *testing.T) {
	for _, r := range requests {
		t.Run(r.name, func(t *testing.T) {
			other := newInstance(t, "b")
			var cuts atomic.Int32
			other.serve = func(d *door, command *pulsarproto.BaseCommand) {
				if cuts.Add(1) == 1 {
					_ = d.socket.Close()
					return
				}
				_ = answer(d, command, nil, "")
			}
			pool, ended := newPool(t, nil), make(chan error, 2)
			r.start(t.Context(), pool, other.info(), cnx.Caller{}, ended)
			err := wait(t, ended)
			want := txn.ErrCoordinatorNotFound // 20: nothing definite is known
			if r.participant {
				want = txn.ErrNotReady
			}
			if !errors.Is(err, ErrUnanswered) || !errors.Is(err, want) {
				t.Errorf("ended in %v", err)
			}
			r.start(t.Context(), pool, other.info(), cnx.Caller{}, ended)
			if err := wait(t, ended); err != nil {
				t.Errorf("behind the cut: %v", err)
			}
		})
	}
}

// A peer that does not answer costs the time of the request's context, and nothing of it is left.
func TestNoAnswer(t *testing.T) {
	other := newInstance(t, "b")
	pool := newPool(t, func(o *Options) { o.ParticipantTimeout = 20 * time.Millisecond })
	for _, r := range requests {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		r.start(ctx, pool, other.info(), cnx.Caller{}, ended)
		if !r.participant { // these have a bound of their own
			cancel()
		}
		if err := wait(t, ended); !errors.Is(err, ErrUnanswered) {
			t.Errorf("%s ended in %v", r.name, err)
		}
		cancel()
	}
	for _, l := range pool.links {
		l.mu.Lock()
		if len(l.pending) != 0 {
			t.Errorf("%d requests are kept", len(l.pending))
		}
		l.mu.Unlock()
	}
}

// A peer that reads but is stuck does not answer PING either, and is given up.
func TestSilentPeer(t *testing.T) {
	other := newInstance(t, "b")
	other.deaf = true
	pool, ended := newPool(t, func(o *Options) { o.KeepAlive = 20 * time.Millisecond }), make(chan error, 1)
	pool.EndTxn(t.Context(), other.info(), testID, cnx.Caller{}, txn.Commit, false, func(err error) { ended <- err })
	if err := wait(t, ended); !errors.Is(err, ErrUnanswered) || !errors.Is(err, errSilent) {
		t.Errorf("ended in %v", err)
	}
}

// What cannot be reached was not asked, and no instance but the one that is meant takes a request.
func TestUnreachable(t *testing.T) {
	stopped := newInstance(t, "b")
	stopped.stop()
	renamed := newInstance(t, "somebody else")
	foreign := newInstance(t, "b")
	foreign.version = "Pulsar 4.0.7"
	elsewhere := renamed.info()
	elsewhere.ID = "b"
	for name, to := range map[string]cluster.Instance{
		"nobody listens": stopped.info(), "another instance has the address": elsewhere, "no instance at all": foreign.info(),
		"no port": {ID: "b"}, "no URL": {ID: "b", ServiceURL: "here"},
	} {
		t.Run(name, func(t *testing.T) {
			pool, ended := newPool(t, nil), make(chan error, 1)
			pool.NewTxn(t.Context(), to, 0, cnx.Caller{}, 1, "", false, func(_ txn.ID, err error) { ended <- err })
			if err := wait(t, ended); !errors.Is(err, txn.ErrNotReady) || errors.Is(err, ErrUnanswered) {
				t.Errorf("ended in %v", err)
			}
			until(t, "no connection is left", func() bool { return pool.Connections() == 0 })
		})
	}
}

// One connection serves one caller, whatever is under way on others, and the other instance hears of the caller as it is.
func TestConnectionPerCaller(t *testing.T) {
	other := newInstance(t, "b")
	other.serve = func(d *door, command *pulsarproto.BaseCommand) { _ = answer(d, command, nil, "") }
	pool := newPool(t, nil)
	callers := []cnx.Caller{
		{}, {Role: "alice", Known: true}, {Role: "alice", Proxy: "proxy", Known: true}, {Role: "root", Known: true, Super: true},
	}
	for range 3 {
		for _, caller := range callers {
			ended := make(chan error, 1)
			pool.AddParticipants(t.Context(), other.info(), testID, caller, []txn.Participant{testTopic}, func(err error) { ended <- err })
			if err := wait(t, ended); err != nil {
				t.Fatal(err)
			}
		}
	}
	doors := other.connections()
	if len(doors) != len(callers) {
		t.Fatalf("%d connections for %d callers", len(doors), len(callers))
	}
	for i, d := range doors {
		if d.caller != callers[i] {
			t.Errorf("the other instance hears of %+v, not %+v", d.caller, callers[i])
		}
	}
}

func TestManyInFlight(t *testing.T) {
	const many = 3000
	other := newInstance(t, "b")
	other.serve = func(d *door, command *pulsarproto.BaseCommand) { _ = answer(d, command, nil, "") }
	pool, ended := newPool(t, nil), make(chan error, many)
	for i := range many {
		requests[i%len(requests)].start(t.Context(), pool, other.info(), cnx.Caller{}, ended)
	}
	for range many {
		if err := wait(t, ended); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(other.connections()); n != 1 {
		t.Errorf("%d connections", n)
	}
}

// Requests, bytes and connections are bounded; what is beyond the bound was not sent.
func TestBounds(t *testing.T) {
	other := newInstance(t, "b")
	pool := newPool(t, func(o *Options) { o.MaxPending, o.MaxConnections = 2, 1 })
	ended := make(chan error, 3)
	for range 3 {
		pool.EndTxn(t.Context(), other.info(), testID, cnx.Caller{}, txn.Commit, false, func(err error) { ended <- err })
	}
	if err := wait(t, ended); !errors.Is(err, txn.ErrTooManyRequests) || errors.Is(err, ErrUnanswered) {
		t.Errorf("a third request: %v", err)
	}
	pool.EndTxn(t.Context(), other.info(), testID, cnx.Caller{Role: "bob"}, txn.Commit, false, func(err error) { ended <- err })
	if err := wait(t, ended); !errors.Is(err, txn.ErrTooManyRequests) {
		t.Errorf("a second connection: %v", err)
	}
}

// Requests that nobody waits for any more are bounded until they are answered: the other instance holds them, and beyond a bound of
// its own it would read no PING.
func TestAbandonedRequestsAreBounded(t *testing.T) {
	other := newInstance(t, "b")
	kept := make(chan func(), 10)
	other.serve = func(d *door, command *pulsarproto.BaseCommand) {
		kept <- func() { _ = answer(d, command, nil, "") }
	}
	pool, ended := newPool(t, func(o *Options) { o.MaxPending = 2 }), make(chan error, 1)
	ask := func(ctx context.Context) {
		pool.EndTxn(ctx, other.info(), testID, cnx.Caller{}, txn.Abort, true, func(err error) { ended <- err })
	}
	for range 4 {
		ctx, cancel := context.WithCancel(t.Context())
		ask(ctx)
		cancel()
		if err := wait(t, ended); !errors.Is(err, ErrUnanswered) {
			t.Fatalf("given up: %v", err)
		}
	}
	ask(t.Context())
	until(t, "four requests", func() bool { return len(kept) >= 4 })
	if err := wait(t, ended); !errors.Is(err, txn.ErrTooManyRequests) || errors.Is(err, ErrUnanswered) {
		t.Errorf("a fifth request: %v", err)
	}
	for range 4 {
		wait(t, kept)()
	}
	until(t, "room for another request", func() bool {
		ctx, cancel := context.WithCancel(t.Context())
		ask(ctx)
		cancel()
		return errors.Is(wait(t, ended), ErrUnanswered)
	})
}

// Ends on a topic that does not answer are bounded, whether somebody waits for them or not, and those on other topics go on (TC-15,
// TC-23). When it answers there is room again.
func TestEndsOfOneTopicAreBounded(t *testing.T) {
	other := newInstance(t, "b")
	kept := make(chan func(), 10)
	other.serve = func(d *door, command *pulsarproto.BaseCommand) {
		respond := func() { _ = answer(d, command, nil, "") }
		if command.GetEndTxnOnPartition().GetTopic() == "free" {
			respond()
			return
		}
		kept <- respond
	}
	pool, ended := newPool(t, func(o *Options) { o.MaxPending, o.MaxPerTopic = 3, 2 }), make(chan error, 3)
	end := func(ctx context.Context, topic string) {
		pool.EndOnParticipant(ctx, other.info(), testID, txn.Participant{Topic: topic}, txn.Commit, 0, func(err error) { ended <- err })
	}
	given, cancel := context.WithCancel(t.Context())
	end(given, "stuck")
	end(t.Context(), "stuck")
	cancel()
	if err := wait(t, ended); !errors.Is(err, ErrUnanswered) {
		t.Fatalf("given up: %v", err)
	}
	end(t.Context(), "stuck")
	if err := wait(t, ended); !errors.Is(err, txn.ErrTooManyRequests) || errors.Is(err, ErrUnanswered) {
		t.Errorf("a third end on the topic: %v", err)
	}
	end(t.Context(), "free")
	if err := wait(t, ended); err != nil {
		t.Errorf("an end on another topic: %v", err)
	}
	for range 2 {
		wait(t, kept)()
	}
	if err := wait(t, ended); err != nil {
		t.Errorf("the end that was waited for: %v", err)
	}
	until(t, "nothing is counted", func() bool {
		for _, l := range pool.links {
			l.mu.Lock()
			defer l.mu.Unlock()
			return len(l.topics) == 0
		}
		return false
	})
}

func TestIdleConnectionIsClosed(t *testing.T) {
	other := newInstance(t, "b")
	other.serve = func(d *door, command *pulsarproto.BaseCommand) { _ = answer(d, command, nil, "") }
	pool := newPool(t, func(o *Options) { o.KeepAlive, o.IdleTimeout = 500*time.Millisecond, 10*time.Millisecond })
	for range 2 {
		ended := make(chan error, 1)
		pool.AddParticipants(t.Context(), other.info(), testID, cnx.Caller{}, []txn.Participant{testTopic}, func(err error) { ended <- err })
		if err := wait(t, ended); err != nil {
			t.Fatal(err)
		}
		doors := other.connections()
		wait(t, doors[len(doors)-1].ended)
		until(t, "no connection is left", func() bool { return pool.Connections() == 0 })
	}
}

// Close answers what waits, on connections that are open and on one that is being opened, and takes nothing more.
func TestClose(t *testing.T) {
	other := newInstance(t, "b")
	pool := New(Options{Self: "a", Secret: testSecret})
	ended := make(chan error, 1)
	pool.EndTxn(t.Context(), other.info(), testID, cnx.Caller{}, txn.Commit, false, func(err error) { ended <- err })
	until(t, "a connection", func() bool { return len(other.connections()) == 1 })
	pool.Close()
	if err := wait(t, ended); !errors.Is(err, errClosed) {
		t.Errorf("ended in %v", err)
	}
	pool.EndTxn(t.Context(), other.info(), testID, cnx.Caller{}, txn.Commit, false, func(err error) { ended <- err })
	if err := wait(t, ended); !errors.Is(err, errClosed) || errors.Is(err, ErrUnanswered) {
		t.Errorf("behind the close: %v", err)
	}
}

// A participant of no kind, and of two, is no command.
func TestAddParticipantsOfOneKind(t *testing.T) {
	pool := newPool(t, nil)
	for _, participants := range [][]txn.Participant{nil, {testTopic, testSub}} {
		ended := make(chan error, 1)
		pool.AddParticipants(t.Context(), cluster.Instance{}, testID, cnx.Caller{}, participants, func(err error) { ended <- err })
		if err := wait(t, ended); !errors.Is(err, txn.ErrNotAllowed) {
			t.Errorf("%v: %v", participants, err)
		}
	}
}
