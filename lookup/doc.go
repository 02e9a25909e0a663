// Package lookup says which address serves a topic. One process serves every topic and every coordinator, so the answer is
// always this process; what differs is how clients reach it.
package lookup
