// Package peer is how instances of one cluster talk to each other: over Pulsar's binary protocol, on the ports that clients use.
// A coordinator ends transactions on topics of other instances, a topic registers with coordinators of others, and the commands
// of clients are passed on to the instance that leads their coordinator.
//
// Requests of administrators that concern topics of several instances are passed on over HTTP, in the same way.
//
// One connection serves one instance and one caller, because a connection has one identity: the caller whom the other instance
// authenticated, as it is. It is opened by the first request and closed when nothing was asked for a while.
//
// Who connects proves two things. To the authentication, if that is on, the credentials of this process. To the other instance
// that it belongs to the cluster: a MAC, under a secret that is kept in the store, over the id of the instance that it means to
// talk to. So an address that belongs to somebody else by now learns nothing that is worth anything elsewhere. Both travel in
// CONNECT; the proof, and whom the connection speaks for, are JSON in original_auth_data, with greetingMethod in
// original_auth_method. original_principal is not used: it is for proxies, and cannot tell through which one the caller came.
//
// Invariants:
//
//   - done is called exactly once, whatever comes first: the answer, the end of the context, the end of the connection.
//   - No call blocks, and every queue is bounded. Beyond the bound a request is refused; nothing of it was sent.
//   - A request without an answer has an unknown result, and its error says so; nothing is ever sent twice.
package peer
