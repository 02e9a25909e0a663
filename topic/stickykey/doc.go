// Package stickykey says which consumer of a Key_Shared subscription is given the messages of a key: pure cores.
//
// A key is hashed to 1..65535. A Selector spreads that range over members, which stand for consumers: AutoSplit halves the
// widest part for each newcomer, Ring puts points of each name on a circle, Fixed takes the parts that consumers ask for.
//
// Invariants:
//
//   - A hash has one member, or none; with AutoSplit and Ring it has one as long as there is any member.
//   - A member that comes or goes moves only hashes that it has afterwards or had before.
package stickykey
