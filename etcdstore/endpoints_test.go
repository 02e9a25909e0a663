package etcdstore

import (
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// saying is the members that say something of themselves.
type saying struct {
	clientv3.Maintenance
	members map[string]*clientv3.StatusResponse
}

func (s *saying) Status(_ context.Context, endpoint string) (*clientv3.StatusResponse, error) {
	if said := s.members[endpoint]; said != nil {
		return said, nil
	}
	return nil, errors.New("it does not answer")
}

// looks are those at members that say what a test puts into their mouths.
type looks struct {
	*endpoints
	said map[string]*clientv3.StatusResponse
	all  []string
}

// newLooks are those of a client that has met the members.
func newLooks(t *testing.T, said map[string]*clientv3.StatusResponse) *looks {
	t.Helper()
	all := slices.Sorted(maps.Keys(said))
	client, err := clientv3.New(clientv3.Config{Endpoints: all})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	client.Maintenance = &saying{members: said}
	e := newEndpoints(all, nil, zerolog.Nop())
	e.client = client
	if _, err := e.meet(t.Context(), time.Second); err != nil {
		t.Fatal(err)
	}
	return &looks{e, said, all}
}

// look returns what the members of the cluster said.
func (l *looks) look(t *testing.T) []answer {
	return l.judge(t.Context(), l.ask(t.Context(), time.Second))
}

// used expects that the client asks some of the members.
func (l *looks) used(t *testing.T, when string, want ...string) {
	t.Helper()
	if got := l.client.Endpoints(); !slices.Equal(got, want) {
		t.Errorf("%s: requests go to %v, want %v", when, got, want)
	}
}

func says(term, leader, applied uint64) *clientv3.StatusResponse {
	return &clientv3.StatusResponse{
		Header: &etcdserverpb.ResponseHeader{ClusterId: 1}, RaftTerm: term, Leader: leader, RaftAppliedIndex: applied,
	}
}

// A member that still learns refuses what it is asked: it is given no requests until it is promoted, at the start and later.
func TestLearnerIsLeftOut(t *testing.T) {
	const learner, voter = "http://learner:2379", "http://voter:2379"
	learns := says(1, 1, 1)
	learns.IsLearner = true
	l := newLooks(t, map[string]*clientv3.StatusResponse{learner: learns, voter: says(1, 1, 1)})
	l.used(t, "at the start", voter)
	l.said[learner] = says(1, 1, 1)
	if answers := l.look(t); len(answers) != 2 {
		t.Errorf("promoted: %d answers", len(answers))
	}
	l.used(t, "promoted", l.all...)
	l.said[learner] = learns
	for range mostMisses {
		l.look(t)
	}
	l.used(t, "replaced", voter)
	why := absence(l.ask(t.Context(), time.Second)[:1], nil)
	if why == nil || !strings.Contains(*why, "learner") {
		t.Errorf("away: %v", why)
	}
}

// A member that comes back is asked nothing while it takes itself for the leader that it was, and while it refuses what it has not yet
// caught up with.
func TestMemberThatLagsIsLeftOut(t *testing.T) {
	const back, other = "http://back:2379", "http://other:2379"
	l := newLooks(t, map[string]*clientv3.StatusResponse{back: says(1, 1, 100), other: says(1, 1, 100)})
	l.look(t)
	l.used(t, "at the start", l.all...)
	for _, applied := range []uint64{5000, 6000} {
		l.said[other] = says(2, 2, applied)
		l.look(t)
	}
	l.used(t, "a leader that was", other)
	l.said[other] = nil
	l.look(t) // nobody is used but who has missed one look
	l.said[back], l.said[other] = says(2, 2, 5999), says(2, 2, 7000)
	l.look(t)
	l.used(t, "it has not what the others had a look ago", other)
	l.said[back], l.said[other] = says(2, 2, 7000), says(2, 2, 8000)
	l.look(t)
	l.used(t, "it has caught up", l.all...)
}

// Raft's indexes begin anew when a cluster is restored. Nobody is ahead then with whom its members had to catch up.
func TestIndexesBeginAnew(t *testing.T) {
	const one, two = "http://one:2379", "http://two:2379"
	l := newLooks(t, map[string]*clientv3.StatusResponse{one: says(3, 1, 5000), two: says(3, 1, 5000)})
	l.look(t)
	for _, endpoint := range l.all {
		l.said[endpoint] = nil
	}
	for range mostMisses {
		l.look(t)
	}
	for _, endpoint := range l.all {
		l.said[endpoint] = says(2, 1, 7)
	}
	l.look(t)
	if answers := l.look(t); len(answers) != 2 {
		t.Errorf("%d members are used", len(answers))
	}
	l.used(t, "restored", l.all...)
}

// loses reports whether a request that has waited long is ended by a look.
func (l *looks) loses(t *testing.T) bool {
	t.Helper()
	ctx, waiting := l.underway.begin(t.Context())
	defer l.underway.forget(waiting)
	waiting.began = time.Now().Add(-time.Hour)
	l.look(t)
	return ctx.Err() != nil
}

// What was passed on to a leader is given up when there is another, or the same in a later term, and not when a member that lags names
// one that was. Where all members were left out the terms may begin anew.
func TestLeadersAreKnownByTheirTerms(t *testing.T) {
	const one, two = "http://one:2379", "http://two:2379"
	l := newLooks(t, map[string]*clientv3.StatusResponse{one: says(5, 1, 1), two: says(5, 1, 1)})
	both := func(said *clientv3.StatusResponse) { l.said[one], l.said[two] = said, said }
	for _, step := range []struct {
		when string
		said *clientv3.StatusResponse
		want bool
	}{
		{"nothing has changed", says(5, 1, 1), false},
		{"a leader that was", says(4, 2, 1), false},
		{"the same leader again", says(5, 1, 1), false},
		{"elected again", says(6, 1, 1), true},
		{"a look later", says(6, 1, 1), true},
		{"two looks later", says(6, 1, 1), false},
		{"left out", nil, false},
		{"still left out", nil, false},
		{"a restored cluster", says(2, 1, 1), true},
	} {
		both(step.said)
		if got := l.loses(t); got != step.want {
			t.Errorf("%s: lost %v, want %v", step.when, got, step.want)
		}
	}
}

// Members are looked at while the reason is sought why one is left out. Here it takes until somebody reads the log.
func TestLooksGoOnBesideReasons(t *testing.T) {
	const one, two = "http://one:2379", "http://two:2379"
	l := newLooks(t, map[string]*clientv3.StatusResponse{one: says(1, 1, 1), two: says(1, 1, 1)})
	read, write := io.Pipe()
	defer time.AfterFunc(30*time.Second, func() { read.CloseWithError(errors.New("a look waits for the reason")) }).Stop()
	l.log = zerolog.New(write)
	l.said[two] = nil
	for range mostMisses + 1 {
		l.look(t)
	}
	l.used(t, "left out", one)
	line := make([]byte, 1<<10)
	if n, err := read.Read(line); err != nil || !strings.Contains(string(line[:n]), two) {
		t.Errorf("%s, %v", line[:n], err)
	}
	l.tasks.Wait()
}

// stands opens a connection to 127.0.0.1:2, on which hear makes something come.
func (l *looks) stands(t *testing.T) (conn *connection, hear func()) {
	t.Helper()
	far, near := net.Pipe()
	t.Cleanup(func() { far.Close() })
	conn = &connection{Conn: near, address: "127.0.0.1:2", of: l.connections}
	l.connections.open[conn] = struct{}{}
	return conn, func() {
		t.Helper()
		go far.Write([]byte("x"))
		if _, err := conn.Read(make([]byte, 1)); err != nil {
			t.Errorf("nothing comes: %v", err)
		}
	}
}

// isCut reports whether the connection was closed.
func (c *connection) isCut() bool { return c.SetDeadline(time.Time{}) != nil }

// What is under way at a member that does not answer ends when nothing comes from it, and some looks later in any case.
func TestSilentMemberIsCut(t *testing.T) {
	const one, two = "http://127.0.0.1:1", "http://127.0.0.1:2"
	l := newLooks(t, map[string]*clientv3.StatusResponse{one: says(1, 1, 1), two: says(1, 1, 1)})
	silent, hear := l.stands(t)
	speaking, hearMore := l.stands(t)
	hear()
	l.said[two] = nil
	for miss := 1; miss <= mostSpared; miss++ {
		l.look(t)
		if got, want := silent.isCut(), miss >= mostMisses; got != want {
			t.Errorf("silent, miss %d: cut %v, want %v", miss, got, want)
		}
		if got, want := speaking.isCut(), miss == mostSpared; got != want {
			t.Errorf("speaking, miss %d: cut %v, want %v", miss, got, want)
		}
		if miss < mostSpared {
			hearMore()
		}
	}
}

// What comes from a member that says itself that it is of no use changes nothing.
func TestMemberThatIsBehindIsCut(t *testing.T) {
	const one, two = "http://127.0.0.1:1", "http://127.0.0.1:2"
	l := newLooks(t, map[string]*clientv3.StatusResponse{one: says(1, 1, 1), two: says(1, 1, 1)})
	conn, hear := l.stands(t)
	l.said[one] = says(2, 2, 1)
	for range mostMisses {
		hear()
		l.look(t)
	}
	if !conn.isCut() {
		t.Error("a connection to a member that lags stands")
	}
}

// A member that knows of no leader is cut off at the first look if another leads, at the second if another is but named: in an election
// that goes by.
func TestElectionCutsNobody(t *testing.T) {
	const one, two, three = "http://127.0.0.1:1", "http://127.0.0.1:2", "http://127.0.0.1:3"
	leads := says(5, 1, 1)
	leads.Header.MemberId = 1
	for _, test := range []struct {
		what       string
		one, three *clientv3.StatusResponse
		two        *clientv3.StatusResponse
		looks      int // until it is cut
	}{
		{"the leader says so", leads, says(5, 1, 1), says(5, 0, 1), 1},
		{"the leader hangs", nil, says(5, 1, 1), says(5, 0, 1), 2},
		{"the leader before says so", leads, says(5, 1, 1), says(6, 0, 1), 2},
		{"the leader knows of none", says(5, 0, 1), says(5, 1, 1), says(5, 0, 1), 2},
	} {
		l := newLooks(t, map[string]*clientv3.StatusResponse{one: leads, two: says(5, 1, 1), three: says(5, 1, 1)})
		conn, _ := l.stands(t)
		l.said[one], l.said[two], l.said[three] = test.one, test.two, test.three
		looks := 0
		for !conn.isCut() && looks < mostSpared {
			l.look(t)
			looks++
		}
		if looks != test.looks {
			t.Errorf("%s: cut at look %d, want %d", test.what, looks, test.looks)
		}
	}
}
