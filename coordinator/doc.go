// Package coordinator runs transaction coordinators: for each one a goroutine that wins a term, loads the log, and then
// steps the state machine with every waiting command, makes the result durable in one group commit, and performs the effects.
//
// Nothing is answered, and no participant is called, before the append that it rests on is durable in this term; a batch
// without an append that holds an answer resting on the term proves the term by a linearizable read. When an append is
// refused or its fate is unknown the term is over: everyone who waits gets ErrCoordinatorNotFound, connections that
// registered are closed, and the next load tells what happened.
//
// Before a commit is stepped its participants are asked whether they can be part of the write that decides it. They hear of the
// fate of that write before anybody else does.
//
// When another process is to lead, the term is handed over between two appends: it is resigned, and what waited and what
// connections that registered send later goes to that process (Relay), until each connection is idle and is closed. A process
// that neither leads nor is to lead refuses connects at once, and requests after a second.
package coordinator
