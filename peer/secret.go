package peer

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/keyspace"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
)

// Secret is what the instances of a cluster share, and nobody else.
type Secret []byte

// secretBytes is the length of a secret.
const secretBytes = 32

// OpenSecret reads the secret of the cluster, and makes it if there is none.
func OpenSecret(ctx context.Context, kv clientv3.KV, keys keyspace.Space) (Secret, error) {
	fresh := make([]byte, secretBytes)
	rand.Read(fresh)
	key := keys.PeerSecret()
	result, err := kv.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0)).
		Then(clientv3.OpPut(key, hex.EncodeToString(fresh))).Else(clientv3.OpGet(key)).Commit()
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", key, err)
	}
	if result.Succeeded {
		return fresh, nil
	}
	stored := result.Responses[0].GetResponseRange().Kvs[0].Value
	secret, err := hex.DecodeString(string(stored))
	if err != nil || len(secret) != secretBytes {
		return nil, fmt.Errorf("%s: want %d hex digits, found %d bytes", key, 2*secretBytes, len(stored))
	}
	return secret, nil
}

// greetingMethod marks CONNECTs of instances, in original_auth_method.
const greetingMethod = "pulsar-tc-instance"

// greeting is what an instance says of itself.
type greeting struct {
	From  string `json:"from"`  // its id
	Proof string `json:"proof"` // hex
	// The caller whom the connection speaks for.
	Role  string `json:"role,omitempty"`
	Proxy string `json:"proxy,omitempty"`
	Known bool   `json:"known,omitempty"`
	Super bool   `json:"super,omitempty"`
}

// proof is the MAC over the id of the instance that is talked to.
func (s Secret) proof(to string) []byte {
	mac := hmac.New(sha256.New, s)
	mac.Write([]byte("to instance " + to))
	return mac.Sum(nil)
}

func (s Secret) greet(from, to string, caller cnx.Caller) (string, error) {
	text, err := json.Marshal(greeting{
		From: from, Proof: hex.EncodeToString(s.proof(to)), Role: caller.Role, Proxy: caller.Proxy, Known: caller.Known, Super: caller.Super,
	})
	return string(text), err
}

// Door tells the connections of other instances from those of clients.
type Door struct {
	// Self is the id of this instance.
	Self   string
	Secret Secret
}

// errStranger does not say what was wrong with the proof.
var errStranger = errors.New("no instance of this cluster, or it means to talk to another one")

// Admit reads whom a connection speaks for. instance is false for a connection of a client; an error refuses one that says
// that it is an instance's and is not.
func (d Door) Admit(cmd *pulsarproto.CommandConnect) (caller cnx.Caller, instance bool, err error) {
	if cmd.GetOriginalAuthMethod() != greetingMethod {
		return cnx.Caller{}, false, nil
	}
	return d.admit(cmd.GetOriginalAuthData())
}

func (d Door) admit(text string) (caller cnx.Caller, instance bool, err error) {
	var g greeting
	if err := json.Unmarshal([]byte(text), &g); err != nil {
		return cnx.Caller{}, false, fmt.Errorf("greeting of an instance: %w", err)
	}
	proof, err := hex.DecodeString(g.Proof)
	if err != nil || !hmac.Equal(proof, d.Secret.proof(d.Self)) {
		return cnx.Caller{}, false, errStranger
	}
	return cnx.Caller{Role: g.Role, Proxy: g.Proxy, Known: g.Known, Super: g.Super}, true, nil
}
