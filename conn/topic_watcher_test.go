package conn

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topicname"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// fakeFeed tells its followers what the test tells it.
type fakeFeed struct {
	mu        sync.Mutex
	followers map[int]func(topicname.Name)
	next      int
}

func (f *fakeFeed) Follow(_ string, changed func(topicname.Name)) func() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.followers == nil {
		f.followers = make(map[int]func(topicname.Name))
	}
	id := f.next
	f.next++
	f.followers[id] = changed
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.followers, id)
	}
}

func (f *fakeFeed) tell(name topicname.Name) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, changed := range f.followers {
		changed(name)
	}
}

func (f *fakeFeed) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.followers)
}

// namespaceOf is topics that a test changes, and the feed that tells of it.
type namespaceOf struct {
	*bench
	feed *fakeFeed

	mu     sync.Mutex
	topics []string
	err    error
	lists  int
}

func newWatchedBench(t *testing.T, options Options, topics ...string) *namespaceOf {
	n := &namespaceOf{bench: newBench(t, options), feed: &fakeFeed{}, topics: topics}
	n.bench.services.TopicFeed = n.feed
	n.bench.topics.list = func(string) ([]string, error) {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.lists++
		return n.topics, n.err
	}
	return n
}

// set changes what there is, and tells of it by the last name.
func (n *namespaceOf) set(told topicname.Name, err error, topics ...string) {
	n.mu.Lock()
	n.topics, n.err = topics, err
	n.mu.Unlock()
	n.feed.tell(told)
	time.Sleep(2 * collectPause)
	synctest.Wait()
}

// listed is how many lists were made.
func (n *namespaceOf) listed() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.lists
}

func full(local string) string { return "persistent://public/default/" + local }

func topicOf(local string) topicname.Name {
	return topicname.Name{Domain: topicname.Persistent, Tenant: "public", Namespace: "default", Local: local}
}

func watchCommand(requestID, watcherID uint64, pattern string) *pulsarproto.BaseCommand {
	return &pulsarproto.BaseCommand{
		Type: pulsarproto.BaseCommand_WATCH_TOPIC_LIST.Enum(),
		WatchTopicList: &pulsarproto.CommandWatchTopicList{
			RequestId: &requestID, WatcherId: &watcherID, Namespace: proto.String("public/default"), TopicsPattern: &pattern,
		},
	}
}

func closeWatchCommand(requestID, watcherID uint64) *pulsarproto.BaseCommand {
	return &pulsarproto.BaseCommand{
		Type:                pulsarproto.BaseCommand_WATCH_TOPIC_LIST_CLOSE.Enum(),
		WatchTopicListClose: &pulsarproto.CommandWatchTopicListClose{RequestId: &requestID, WatcherId: &watcherID},
	}
}

func (p *peer) wantWatch(requestID uint64, topics ...string) string {
	p.t.Helper()
	got := p.want(pulsarproto.BaseCommand_WATCH_TOPIC_LIST_SUCCESS).GetWatchTopicListSuccess()
	if got.GetRequestId() != requestID || !slices.Equal(got.GetTopic(), topics) {
		p.t.Errorf("answer %v, want topics %q of request %d", got, topics, requestID)
	}
	return got.GetTopicsHash()
}

func (p *peer) wantUpdate(watcherID uint64, added, deleted []string, list ...string) {
	p.t.Helper()
	got := p.want(pulsarproto.BaseCommand_WATCH_TOPIC_UPDATE).GetWatchTopicUpdate()
	if got.GetWatcherId() != watcherID || !slices.Equal(got.GetNewTopics(), added) || !slices.Equal(got.GetDeletedTopics(), deleted) || got.GetTopicsHash() != topicsHash(list) {
		p.t.Errorf("update %v, want new %q, deleted %q, list %q", got, added, deleted, list)
	}
}

// A watcher is told the matching topics first, then what changes, with the hash of the list behind it.
func TestWatchTopicList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newWatchedBench(t, Options{}, full("a"), full("b"), full("other"))
		p := n.newPeer(t)
		p.send(connectCommand(21))
		if features := p.want(pulsarproto.BaseCommand_CONNECTED).GetConnected().GetFeatureFlags(); !features.GetSupportsTopicWatchers() {
			t.Errorf("features %v", features)
		}
		p.send(watchCommand(1, 7, "public/default/[a-z]"))
		hash := p.wantWatch(1, full("a"), full("b"))
		n.set(topicOf("c"), nil, full("a"), full("b"), full("c"))
		p.wantUpdate(7, []string{full("c")}, nil, full("a"), full("b"), full("c"))
		n.set(topicOf("a-partition-0"), nil, full("a-partition-0"), full("b"))
		p.wantUpdate(7, []string{full("a-partition-0")}, []string{full("a"), full("c")}, full("a-partition-0"), full("b"))
		// A repeat for the same watcher gets what it has; nothing if it has it already.
		p.send(watchCommand(2, 7, "public/default/[a-z]"))
		p.wantWatch(2, full("a-partition-0"), full("b"))
		n.set(topicname.Name{}, nil, full("a"), full("b"))
		p.wantUpdate(7, []string{full("a")}, []string{full("a-partition-0")}, full("a"), full("b"))
		again := watchCommand(3, 8, "public/default/[a-z]")
		again.WatchTopicList.TopicsHash = &hash
		p.send(again)
		p.wantWatch(3)
		p.send(closeWatchCommand(4, 7))
		p.want(pulsarproto.BaseCommand_SUCCESS)
		n.set(topicOf("b"), nil, full("a"))
		p.wantUpdate(8, nil, []string{full("b")}, full("a"))
		p.send(closeWatchCommand(5, 8))
		p.want(pulsarproto.BaseCommand_SUCCESS)
		p.send(closeWatchCommand(6, 99))
		p.want(pulsarproto.BaseCommand_SUCCESS)
		synctest.Wait()
		if got, watched := n.feed.count(), n.watched.Load(); got != 0 || watched != 0 {
			t.Errorf("%d followers and %d bytes are left", got, watched)
		}
	})
}

// What does not concern a pattern costs no list, and many changes at once cost few.
func TestWatchersListOnlyForChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newWatchedBench(t, Options{}, full("a"))
		p := n.connectedPeer(t)
		p.send(watchCommand(1, 1, "public/default/a.*"))
		p.wantWatch(1, full("a"))
		n.set(topicOf("b"), nil, full("a"), full("b"))
		if got := n.listed(); got != 1 {
			t.Errorf("%d lists, want 1: no topic of the pattern has changed", got)
		}
		n.set(topicOf("a-partition-3"), nil, full("a"), full("b")) // nothing new
		if got := n.listed(); got != 2 {
			t.Errorf("%d lists, want 2", got)
		}
		for range 1000 {
			n.feed.tell(topicOf("a1"))
		}
		time.Sleep(time.Second)
		if got := n.listed(); got > 4 {
			t.Errorf("%d lists for changes at one time", got)
		}
	})
}

// A list that cannot be made is made again until it can; a namespace that is gone has no topics. Nothing is lost meanwhile.
func TestWatchersSurviveFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newWatchedBench(t, Options{KeepAlive: -1}, full("a"))
		p := n.connectedPeer(t)
		n.set(topicname.Name{}, txn.ErrNotReady)
		p.send(watchCommand(1, 1, ".*"))
		p.wantError(1, pulsarproto.ServerError_ServiceNotReady)
		n.set(topicname.Name{}, nil, full("a"))
		p.send(watchCommand(2, 1, ".*")) // the one refused is forgotten
		p.wantWatch(2, full("a"))
		n.set(topicOf("b"), txn.ErrNotReady)
		n.mu.Lock()
		n.topics, n.err = []string{full("a"), full("b")}, nil
		n.mu.Unlock()
		time.Sleep(2 * relistPause)
		p.wantUpdate(1, []string{full("b")}, nil, full("a"), full("b"))
		n.set(topicname.Name{}, cnx.Refuse(pulsarproto.ServerError_TopicNotFound, "Namespace not found"))
		p.wantUpdate(1, nil, []string{full("a"), full("b")})
	})
}

func TestWatchersThatAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newWatchedBench(t, Options{MaxMessageSize: 1 << 10}, full("a"))
		p := n.connectedPeer(t)
		p.send(watchCommand(1, 1, strings.Repeat("x", 51)))
		if text := p.wantError(1, pulsarproto.ServerError_NotAllowedError); text != "Unable to create topic list watcher: Pattern longer than maximum: 50" {
			t.Errorf("text %q", text)
		}
		for i := range maxTopicWatchers {
			p.send(watchCommand(2, uint64(i), ".*"))
			p.wantWatch(2, full("a"))
		}
		p.send(watchCommand(3, maxTopicWatchers, ".*"))
		p.wantError(3, pulsarproto.ServerError_TooManyRequests)
		n.watched.Add(maxWatchedBytes)
		other := n.connectedPeer(t)
		other.send(watchCommand(1, 1, ".*"))
		other.wantError(1, pulsarproto.ServerError_TooManyRequests)
		n.watched.Add(-maxWatchedBytes)
		n.set(topicOf("z"), nil, full(strings.Repeat("z", 1000)))
		other.send(watchCommand(2, 1, ".*"))
		other.wantError(2, pulsarproto.ServerError_TooManyRequests)
		p.network.Close()
		other.network.Close()
		synctest.Wait()
		if got, watched := n.feed.count(), n.watched.Load(); got != 0 || watched != 0 {
			t.Errorf("%d followers and %d bytes are left", got, watched)
		}
	})
}

func TestWatchersAreOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for about, n := range map[string]*namespaceOf{
			"no patterns": newWatchedBench(t, Options{MaxPatternLength: -1}),
			"no feed":     {bench: newBench(t, Options{})},
		} {
			p := n.newPeer(t)
			p.send(connectCommand(21))
			if p.want(pulsarproto.BaseCommand_CONNECTED).GetConnected().GetFeatureFlags().SupportsTopicWatchers != nil {
				t.Errorf("%s: announced", about)
			}
			p.send(watchCommand(1, 1, ".*"))
			p.wantError(1, pulsarproto.ServerError_NotAllowedError)
		}
	})
}

// A watcher that is closed before its list is made is refused, and its id is free.
func TestWatcherClosedEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newWatchedBench(t, Options{})
		release := make(chan struct{})
		n.bench.topics.list = func(string) ([]string, error) { <-release; return []string{full("a")}, nil }
		p := n.connectedPeer(t)
		p.send(watchCommand(1, 1, ".*"))
		synctest.Wait()
		p.send(watchCommand(2, 1, ".*"))
		p.wantError(2, pulsarproto.ServerError_ServiceNotReady)
		p.send(closeWatchCommand(3, 1))
		p.want(pulsarproto.BaseCommand_SUCCESS)
		close(release)
		p.wantError(1, pulsarproto.ServerError_ServiceNotReady)
		p.send(watchCommand(4, 1, ".*"))
		p.wantWatch(4, full("a"))
	})
}

// An update that no frame can hold goes out in several.
func TestLargeUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newWatchedBench(t, Options{MaxMessageSize: 1 << 10})
		p := n.connectedPeer(t)
		p.send(watchCommand(1, 1, ".*"))
		p.wantWatch(1)
		var topics []string
		for i := range 50 {
			topics = append(topics, full(fmt.Sprintf("topic-%02d", i)))
		}
		n.set(topicname.Name{}, nil, topics...)
		var got []string
		for len(got) < len(topics) {
			update := p.want(pulsarproto.BaseCommand_WATCH_TOPIC_UPDATE).GetWatchTopicUpdate()
			if update.GetTopicsHash() != topicsHash(topics) || len(update.GetNewTopics()) == 0 || listSize(update.GetNewTopics()) > 1<<10 {
				t.Fatalf("update %v", update)
			}
			got = append(got, update.GetNewTopics()...)
		}
		if !slices.Equal(got, topics) {
			t.Errorf("new topics %q", got)
		}
	})
}

// wavering is houseRules, as long as rights can be read.
type wavering struct {
	houseRules
	failure atomic.Pointer[cnx.Refusal]
}

func (w *wavering) ListTopics(ctx context.Context, caller Caller, namespace string) error {
	if failure := w.failure.Load(); failure != nil {
		return failure
	}
	return w.houseRules.ListTopics(ctx, caller, namespace)
}

// A watcher goes on when rights could not be read for a while. It ends with the right.
func TestWatchersSurviveRightsThatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rights := &wavering{}
		n := newWatchedBench(t, Options{KeepAlive: -1, Authenticator: nameTags{}, Authorizer: rights}, full("a"))
		p := n.newPeer(t)
		connect := connectCommand(21)
		connect.Connect.AuthData = []byte("reader")
		p.send(connect)
		p.want(pulsarproto.BaseCommand_CONNECTED)
		p.send(watchCommand(1, 1, ".*"))
		p.wantWatch(1, full("a"))
		rights.failure.Store(cnx.Refuse(pulsarproto.ServerError_ServiceNotReady, "permissions are not available"))
		n.set(topicOf("b"), nil, full("a"), full("b"))
		rights.failure.Store(nil)
		time.Sleep(2 * relistPause)
		p.wantUpdate(1, []string{full("b")}, nil, full("a"), full("b"))
		rights.failure.Store(cnx.Refuse(pulsarproto.ServerError_AuthorizationError, "not authorized"))
		n.set(topicOf("c"), nil, full("a"), full("b"), full("c"))
		if n.feed.count() != 0 {
			t.Error("a watcher without the right goes on")
		}
	})
}
