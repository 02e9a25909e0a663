package failpoint

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Wrap returns a client that obeys the rules in the environment, or kv itself if there are none. It panics if they cannot be
// read: a crash test that crashes nothing would pass.
func Wrap(kv clientv3.KV) clientv3.KV {
	text := os.Getenv(Variable)
	if text == "" {
		return kv
	}
	rules, err := parse(text)
	if err != nil {
		panic(err)
	}
	return &client{KV: kv, rules: rules, die: die}
}

// die ends the process as a power cut would, as far as a process can.
func die(r *rule) {
	report(r, "dies")
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	if err != nil {
		panic(err)
	}
	select {} // until the signal arrives
}

func report(r *rule, what string) { fmt.Fprintf(os.Stderr, "failpoint: %s %s\n", r, what) }

// client is a client that obeys rules.
type client struct {
	clientv3.KV
	rules []*rule
	die   func(*rule)

	promised sync.Mutex // held from a promise to its turn; keeps promised effects in order
	queue    chan promise
}

// promise is an effect that was answered before it happened.
type promise struct {
	when time.Time
	txn  clientv3.Txn
}

func (c *client) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	met := c.meeting(kindsOf([]clientv3.Op{clientv3.OpGet(key, opts...)}))
	c.dieAt(met, before)
	response, err := c.KV.Get(ctx, key, opts...)
	c.dieAt(met, after)
	return response, err
}

func (c *client) Put(ctx context.Context, key, value string, opts ...clientv3.OpOption) (*clientv3.PutResponse, error) {
	met := c.meeting(kindsOf([]clientv3.Op{clientv3.OpPut(key, value, opts...)}))
	c.dieAt(met, before)
	response, err := c.KV.Put(ctx, key, value, opts...)
	c.dieAt(met, after)
	return response, err
}

func (c *client) Txn(ctx context.Context) clientv3.Txn {
	return &transaction{Txn: c.KV.Txn(ctx), client: c}
}

// meeting returns the rules that are about an effect of kinds.
func (c *client) meeting(kinds []Kind) []*rule {
	var met []*rule
	for _, r := range c.rules {
		if r.meets(kinds) {
			met = append(met, r)
		}
	}
	return met
}

func (c *client) dieAt(met []*rule, at mode) {
	for _, r := range met {
		if r.mode == at {
			c.die(r)
		}
	}
}

// transaction is an etcd transaction that obeys rules.
type transaction struct {
	clientv3.Txn
	client *client
	cmps   []clientv3.Cmp
	then   []clientv3.Op
	or     []clientv3.Op
}

func (t *transaction) If(cmps ...clientv3.Cmp) clientv3.Txn {
	t.Txn, t.cmps = t.Txn.If(cmps...), cmps
	return t
}

func (t *transaction) Then(ops ...clientv3.Op) clientv3.Txn {
	t.Txn, t.then = t.Txn.Then(ops...), ops
	return t
}

func (t *transaction) Else(ops ...clientv3.Op) clientv3.Txn {
	t.Txn, t.or = t.Txn.Else(ops...), ops
	return t
}

func (t *transaction) Commit() (*clientv3.TxnResponse, error) {
	met := t.client.meeting(kindsOf(t.then))
	t.client.dieAt(met, before)
	for _, r := range met {
		switch r.mode {
		case hold:
			report(r, "holds")
			awaitFile(r.file)
		case late:
			t.lose(r)
			return nil, context.DeadlineExceeded
		case early:
			t.promise(r)
			return &clientv3.TxnResponse{Header: &etcdserverpb.ResponseHeader{}, Succeeded: true}, nil
		}
	}
	response, err := t.Txn.Commit()
	t.client.dieAt(met, after)
	return response, err
}

// awaitFile waits until a file exists.
func awaitFile(path string) {
	for {
		if _, err := os.Stat(path); err == nil {
			return
		}
		time.Sleep(filePause)
	}
}

// filePause is between two looks for a file.
const filePause = 2 * time.Millisecond

// again is the same transaction for another context; its operations are copied, since the caller may use their memory again.
func (t *transaction) again(ctx context.Context) clientv3.Txn {
	return t.client.KV.Txn(ctx).If(append([]clientv3.Cmp(nil), t.cmps...)...).
		Then(append([]clientv3.Op(nil), t.then...)...).
		Else(append([]clientv3.Op(nil), t.or...)...)
}

// lose has the transaction arrive at etcd when nobody waits for it any more.
func (t *transaction) lose(r *rule) {
	txn := t.again(context.Background())
	go func() {
		awaitFile(r.file)
		response, err := txn.Commit()
		if err != nil {
			report(r, "failed: "+err.Error())
			return
		}
		report(r, fmt.Sprintf("applied: %v", response.Succeeded))
	}()
}

// promise has the transaction happen after its turn, in the order of the promises.
func (t *transaction) promise(r *rule) {
	t.client.promised.Lock()
	defer t.client.promised.Unlock()
	if t.client.queue == nil {
		t.client.queue = make(chan promise, 1<<20)
		go t.client.keepPromises(r)
	}
	t.client.queue <- promise{time.Now().Add(r.delay), t.again(context.Background())}
}

func (c *client) keepPromises(r *rule) {
	for p := range c.queue {
		time.Sleep(time.Until(p.when))
		if response, err := p.txn.Commit(); err != nil || !response.Succeeded {
			report(r, fmt.Sprintf("broke a promise: %v", err))
		}
	}
}
