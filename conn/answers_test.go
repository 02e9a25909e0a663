package conn

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// TC-4: an answer waits for no other one. TC-5: each request is answered exactly once, whatever its id is.
func TestTC4CompletionOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{})
		ends := make(map[uint64]func(error))
		b.coordinators.end = func(id txn.ID, _ txn.Action, done func(error)) { ends[id.Least] = done }
		p := b.connectedPeer(t)
		p.send(
			endTxnCommand(1, 0, 10, 0),
			endTxnCommand(2, 0, 11, 0),
			endTxnCommand(2, 1, 12, 0), // a repeated request id is a request of its own
			newTxnCommand(3, 0),
			addPartitionCommand(4, 0, 10, "t"),
		)
		p.want(pulsarproto.BaseCommand_NEW_TXN_RESPONSE)
		p.want(pulsarproto.BaseCommand_ADD_PARTITION_TO_TXN_RESPONSE)
		p.alive()
		synctest.Wait()
		for _, least := range []uint64{12, 10, 11} {
			ends[least](nil)
			if got := p.want(pulsarproto.BaseCommand_END_TXN_RESPONSE).GetEndTxnResponse().GetTxnidLeastBits(); got != least {
				t.Errorf("answer for %d, want %d", got, least)
			}
		}
		p.wantNothing()
	})
}

// TC-5: whatever the mix and whoever finishes first, each request is answered exactly once.
func TestTC5ExactlyOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{KeepAlive: -1})
		const requests = 2000
		random := rand.New(rand.NewPCG(1, 2))
		later := func(f func()) {
			delay := time.Duration(random.IntN(1000)) * time.Millisecond
			go func() {
				time.Sleep(delay)
				f()
			}()
		}
		fails := func() error {
			if random.IntN(3) == 0 {
				return txn.ErrTooManyRequests
			}
			return nil
		}
		b.coordinators.newTxn = func(tc uint64, done func(txn.ID, error)) {
			err := fails()
			later(func() { done(txn.ID{Most: tc}, err) })
		}
		b.coordinators.add = func(_ txn.ID, _ []txn.Participant, done func(error)) {
			err := fails()
			later(func() { done(err) })
		}
		b.coordinators.end = func(_ txn.ID, _ txn.Action, done func(error)) { done(fails()) }
		b.coordinators.connect = func(_ uint64, _ func(bool), done func(error)) {
			err := fails()
			later(func() { done(err) })
		}
		p := b.connectedPeer(t)
		go func() {
			for i := range uint64(requests) {
				command := []*pulsarproto.BaseCommand{
					newTxnCommand(i, i%3),
					addPartitionCommand(i, i%3, i, "t"),
					addSubscriptionCommand(i, i%3, i, "t", "s"),
					endTxnCommand(i, i%3, i, 0),
					tcConnectCommand(i, i%3),
					metadataCommand(i, "t"),
					lookupCommand(i, "t"),
					producerCommand(i, i%50, "t"),
					closeProducerCommand(i, i%50),
					subscribeCommand(i, i%50, "t"),
					closeConsumerCommand(i, i%50),
					ackCommand(&i, i%50, 5, 6),
					lastMessageIDCommand(i, i%50),
				}[i%13]
				if _, err := p.network.Write(encodeFrame(t, command, nil)); err != nil {
					t.Errorf("request %d: %v", i, err)
				}
			}
		}()
		answered := make(map[uint64]bool)
		for range requests {
			command, err := p.receive()
			if err != nil {
				t.Fatal(err)
			}
			body := bodyOf(command)
			id := body.Get(body.Descriptor().Fields().ByName("request_id")).Uint()
			if answered[id] {
				t.Errorf("request %d is answered twice, by %v", id, command)
			}
			answered[id] = true
		}
		p.wantNothing()
		if len(answered) != requests {
			t.Errorf("%d requests are answered, want %d", len(answered), requests)
		}
	})
}

// FC-33: a PING is answered at once while ENDs wait for a participant.
func TestFC33PongWhileBlocked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{MaxPendingRequests: 100})
		var waiting held
		b.coordinators.end = func(_ txn.ID, _ txn.Action, d func(error)) { waiting.hold(d) }
		p := b.connectedPeer(t)
		for i := range 100 {
			p.send(endTxnCommand(uint64(i), 0, uint64(i), 0))
		}
		p.alive() // also at the bound
		synctest.Wait()
		for _, d := range waiting.all() {
			d(nil)
		}
		for range 100 {
			p.want(pulsarproto.BaseCommand_END_TXN_RESPONSE)
		}
	})
}
