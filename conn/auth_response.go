package conn

import (
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
)

// credentials watches the end of what a login proved. A client that can is asked for fresh credentials before it comes; the
// connection ends with those that are not renewed.
//
// Source: ServerCnx.refreshAuthenticationCredentials, which asks only after the end and waits one more interval.
type credentials struct {
	end atomic.Int64 // of the credentials, Unix nanoseconds; 0: they have none. A timer may be late, so the reader looks, too

	mu         sync.Mutex // guards everything below; session.mu and outbox.mu may be taken inside it
	timer      *time.Timer
	identity   cnx.Identity
	renewable  bool // the client knows AUTH_CHALLENGE, and its credentials can be renewed
	challenged bool // an answer is awaited
	ended      bool // the connection
}

// leastRenewal is the time before the end from which no client is asked any more: the answer would come too late.
const leastRenewal = time.Second

// latestEnd, of the year 2262, is the last second that int64 nanoseconds reach. Credentials that end later never do: certificates have
// the year 9999 for that (RFC 5280 section 4.1.2.5), tokens often 9999999999.
const latestEnd = math.MaxInt64/int64(time.Second) - 1

// watchCredentials begins to watch a connection that logged in as identity.
func (s *session) watchCredentials(identity cnx.Identity, supportsRefresh bool) {
	c := &s.credentials
	c.mu.Lock()
	defer c.mu.Unlock()
	c.identity, c.renewable = identity, supportsRefresh && identity.Method != ""
	s.planCredentials()
}

// planCredentials sets the timer to the challenge, or to the end of the credentials. credentials.mu is held.
func (s *session) planCredentials() {
	c := &s.credentials
	if c.timer != nil {
		c.timer.Stop()
	}
	if c.identity.Expires.IsZero() || c.identity.Expires.Unix() > latestEnd || c.ended {
		c.end.Store(0)
		return
	}
	c.end.Store(c.identity.Expires.UnixNano())
	wait := time.Until(c.identity.Expires)
	if c.renewable && !c.challenged && wait >= leastRenewal {
		wait -= min(s.options.AuthRefresh, wait/2)
	}
	c.timer = time.AfterFunc(max(wait, 0), s.credentialsDue)
}

// expired reports whether the credentials have come to their end.
func (c *credentials) expired() bool {
	end := c.end.Load()
	return end != 0 && time.Now().UnixNano() >= end
}

// credentialsDue challenges the client, or ends the connection.
func (s *session) credentialsDue() {
	c := &s.credentials
	c.mu.Lock()
	defer c.mu.Unlock()
	switch left := time.Until(c.identity.Expires); {
	case c.ended, c.identity.Expires.IsZero():
	case left <= 0:
		s.log.Debug().Str("role", s.caller.Role).Msg("credentials expired")
		s.finish(ClosedExpiredLogin)
	default:
		if c.renewable && !c.challenged && left >= leastRenewal/2 {
			c.challenged = true
			s.out.queue(func(b []byte) []byte {
				return pulsarproto.AppendAuthChallenge(b, "pulsar-tc "+s.options.Version, c.identity.Method, s.protocol)
			})
		}
		s.planCredentials()
	}
}

func (s *session) stopCredentials() {
	c := &s.credentials
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	if c.timer != nil {
		c.timer.Stop()
	}
}

// authResponse takes fresh credentials. They must be for the same role: what the connection has attached stays with it.
//
// Source: PulsarApi.proto CommandAuthResponse; ServerCnx.handleAuthResponse.
func (s *session) authResponse(cmd *pulsarproto.CommandAuthResponse) error {
	c := &s.credentials
	c.mu.Lock()
	identity, challenged := c.identity, c.challenged
	c.mu.Unlock()
	if !challenged {
		return &inputError{BadResponse, errors.New("AUTH_RESPONSE without a challenge")}
	}
	renewed, err := s.options.Authenticator.Refresh(identity, s.certificates, cmd.GetResponse())
	if err != nil {
		return s.refuseLogin(pulsarproto.BaseCommand_AUTH_RESPONSE, clientVersion(cmd.GetClientVersion()), err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.identity, c.challenged = renewed, false
	s.planCredentials()
	return nil
}
