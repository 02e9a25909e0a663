// Package fsm is the state machine of one transaction coordinator. It reads no clock, starts no goroutine, takes no lock and
// does no IO: commands and times come in, log changes and effects go out, and the same commands give the same result byte for
// byte.
//
// The driver steps every waiting command, makes what Take returns durable in one go, and only then performs the effects.
// A machine whose append failed or is of unknown fate is thrown away: the next term loads the log.
//
// Invariants:
//
//   - apply alone changes what a load would find again; Step calls it with the record that it appends, so recovery is apply
//     over the log (TC-9, TC-21);
//   - an effect is in the same Ready as the change that it rests on, or a later one;
//   - a commit that carries a settlement, made by all participants that Settles returned just before, ends with its decision;
//   - the record that ends a transaction is its outcome: there is no moment between the two (P-14, P-17);
//   - an id is reserved, durably, no later than with the record that uses it.
package fsm
