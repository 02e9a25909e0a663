// Package lookup says which address serves a topic. One process serves every topic and every coordinator where nobody shares
// its store; else their owner is asked for.
package lookup
