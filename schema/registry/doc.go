// Package registry keeps the schemas of topics in etcd.
//
// The versions of a topic are numbered from 0, without gaps. Each is one key, and the head tells how many numbers are used
// up and which is the first that counts. Invariants:
//
//   - Whatever changes the schemas of a topic is one etcd transaction that compares the head and writes it anew. So two
//     producers that bring different schemas at the same time get different versions, the second one after a check against
//     the first, and two that bring the same schema get the same version.
//   - A version is answered only when it is stored. It never changes until it is deleted.
//   - A deletion takes a number and removes all versions before it. A forced one removes everything, and numbers start again.
//
// Schemas are parsed two at a time, and those of one topic one after the other, so that a topic whose schemas take long holds up
// nobody else for long.
//
// The head has a byte 1, then the next number and the first number that counts, each a uvarint. For versions see package
// schema.
package registry
