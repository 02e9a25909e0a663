package etcdstore

import (
	"context"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

const (
	// authenticateMethod is what tokens are got by.
	authenticateMethod = "/etcdserverpb.Auth/Authenticate"
	// tokenShare and refusalShare are for how long everybody who asks for a token gets the same one, and the same refusal. Tokens
	// live for some seconds at least.
	tokenShare   = 200 * time.Millisecond
	refusalShare = time.Second
)

// tokens bounds how often this process asks for a token. The client asks for one with each stream that it opens and for each
// request whose token is refused; etcd checks a password with bcrypt, which takes long, one after the other.
type tokens struct {
	turn chan struct{} // holds the turn of the one who may ask

	// used by whose turn it is
	at    time.Time // of the newest answer
	reply etcdserverpb.AuthenticateResponse
	err   error
}

func newTokens() *tokens {
	t := &tokens{turn: make(chan struct{}, 1)}
	t.turn <- struct{}{}
	return t
}

// tokenTime bounds the question for a token: everybody waits for its answer, and a member that hangs does not end a stream's.
const tokenTime = 3 * time.Second

// get fills reply, from the newest answer if that is young, else by ask.
func (t *tokens) get(ctx context.Context, reply *etcdserverpb.AuthenticateResponse, ask func(context.Context) error) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.turn:
	}
	defer func() { t.turn <- struct{}{} }()
	age := time.Since(t.at)
	if t.err != nil && age < refusalShare {
		return t.err
	}
	if t.err == nil && age < tokenShare {
		proto.Merge(reply, &t.reply)
		return nil
	}
	asking, cancel := context.WithTimeout(ctx, tokenTime)
	defer cancel()
	err := ask(asking)
	if ctx.Err() != nil || unanswered(err) {
		return err // says something about this caller, or the member that was asked, alone
	}
	t.at, t.err = time.Now(), err
	proto.Reset(&t.reply)
	if err == nil {
		proto.Merge(&t.reply, reply)
	}
	return err
}

// unanswered tells the errors of a question that etcd has not decided.
func unanswered(err error) bool {
	code := status.Code(err)
	if code == codes.Unknown {
		code = status.FromContextError(err).Code()
	}
	return code == codes.Unavailable || code == codes.DeadlineExceeded || code == codes.Canceled
}
