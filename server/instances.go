package server

import (
	"context"
	"crypto/x509"
	"fmt"

	"github.com/pulsar-tc/pulsar-tc/cluster"
	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/etcdcreator"
	"github.com/pulsar-tc/pulsar-tc/peer"
	"github.com/pulsar-tc/pulsar-tc/topic"
	"github.com/pulsar-tc/pulsar-tc/topicname"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// openPeers makes this process able to talk to those that share its store, and them to it.
func (s *Server) openPeers(ctx, _ context.Context) error {
	if !s.options.External() {
		return nil
	}
	c := s.options.Config
	credentials, err := peer.ParseCredentials(c.BrokerClientAuthenticationPlugin, c.BrokerClientAuthenticationParams)
	if err != nil {
		return err
	}
	if err := s.tryCredentials(credentials); err != nil {
		return fmt.Errorf("brokerClientAuthenticationPlugin, brokerClientAuthenticationParameters: others, whose settings are taken to be those here, would refuse this process: %w", err)
	}
	secret, err := peer.OpenSecret(ctx, s.kv, s.options.space())
	if err != nil {
		return err
	}
	self := s.cluster.Self().ID
	s.door = &peer.Door{Self: self, Secret: secret}
	s.peers = peer.New(peer.Options{
		Self: self, Secret: secret, Credentials: credentials, TLS: c.BrokerClientTLSEnabled, TrustFile: c.BrokerClientTrustCertsFilePath,
		Version: s.options.Version, Log: s.options.Log,
	})
	s.onClose(func(context.Context) error { s.peers.Close(); return nil })
	return nil
}

// tryCredentials shows the credentials for other processes to this one.
func (s *Server) tryCredentials(credentials peer.Credentials) error {
	if s.authentication == nil {
		return nil
	}
	connect, err := credentials.Connect(s.options.Version)
	if err != nil {
		return err
	}
	var certificates []*x509.Certificate
	if certificates, err = credentials.Certificates(); err != nil {
		return err
	}
	_, err = s.authentication.Login(certificates, connect)
	return err
}

// share makes topics belong to one of several instances.
func (s *Server) share(options *topic.Options) {
	if s.options.External() {
		options.Instance, options.Watcher = cluster.Member{Cluster: s.cluster}, s.store.Client()
	}
}

// creatorOptions name the instance by what is known when something is made: this process has joined the cluster then.
func (s *Server) creatorOptions() etcdcreator.Options {
	options := etcdcreator.Options{KV: s.kv, Keys: s.options.space(), Log: s.options.Log}
	if s.options.External() {
		options.Instance = func() etcdcreator.Instance { return cluster.Member{Cluster: s.cluster} }
	}
	return options
}

// serving is the instance that serves a topic, or is to serve it, for a topic that no coordinator serves. Errors: txn.ErrNotReady.
func (s *Server) serving(ctx context.Context, name topicname.Name) (cluster.Instance, error) {
	if name.Domain != topicname.NonPersistent {
		id, err := s.topics.Owner(ctx, name)
		if err != nil {
			return cluster.Instance{}, fmt.Errorf("%w: %w", txn.ErrNotReady, err)
		}
		if owner, lives := s.cluster.Find(id); lives {
			return owner, nil
		}
	}
	return s.place(name)
}

// place is the instance that is to serve a topic which nobody serves. Errors: txn.ErrNotReady.
func (s *Server) place(name topicname.Name) (cluster.Instance, error) {
	placed := s.cluster.PlaceTopic(name.String())
	if placed.ID == "" {
		return placed, fmt.Errorf("%w: every instance is stopping", txn.ErrNotReady)
	}
	return placed, nil
}

// placedHere refuses a topic that is not stored and that another instance is to serve. Errors: *topic.NotOwnerError, txn.ErrNotReady.
func (s *Server) placedHere(name topicname.Name) error {
	placed, err := s.place(name)
	if err == nil && placed.ID != s.cluster.Self().ID {
		err = &topic.NotOwnerError{Topic: name, Owner: placed.ID}
	}
	return err
}

// followPlaces sends the clients of topics that are not stored elsewhere when another instance is to serve them, until run is done.
func (s *Server) followPlaces(run context.Context) {
	for {
		changed := s.cluster.Changed()
		s.nonPersistent.Recheck()
		select {
		case <-changed:
		case <-run.Done():
			return
		}
	}
}

// registrar registers participants with coordinators, whoever leads them.
type registrar struct {
	coordinators
	server *Server
}

// AddParticipants implements topic.Registrar.
func (r *registrar) AddParticipants(ctx context.Context, id txn.ID, caller cnx.Caller, participants []txn.Participant, done func(error)) {
	if r.server.peers == nil || r.Expected(id.Most) {
		r.coordinators.AddParticipants(ctx, id, caller, participants, done)
		return
	}
	go func() {
		leader, err := r.server.leaderOf(ctx, id.Most)
		if err != nil {
			done(err)
			return
		}
		r.server.peers.AddParticipants(ctx, leader, id, caller, participants, done)
	}()
}

// neighbours show the instances to Pulsar's admin REST.
type neighbours struct {
	*cluster.Cluster
	*peer.Pool
	*peer.Door
	server *Server
}

func (n *neighbours) Owner(ctx context.Context, name topicname.Name) (cluster.Instance, error) {
	return n.server.ownerOf(ctx, name)
}
