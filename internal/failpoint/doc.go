// Package failpoint stops or bends a server at one of its store effects, for crash tests. Only a build with the tag failpoint
// contains it. It wraps the etcd client of the server and knows an effect by the keys and values of its etcd transaction.
//
// The environment variable PULSAR_TC_FAILPOINT holds rules, separated by semicolons:
//
//	before:KIND:N         end the process with SIGKILL just before its Nth effect of the kind
//	after:KIND:N          the same, when etcd has answered and nobody has heard of it
//	hold:KIND:N:FILE      let the Nth effect of the kind wait, before it reaches etcd, until the file exists
//	late:KIND:N:FILE      answer the Nth effect of the kind with a lost connection at once, and ask etcd when the file exists
//	early:KIND:DURATION   answer every effect of the kind with success at once, and ask etcd that much later: a server that
//	                      does this breaks its promises
//
// What a rule did is a line on stderr that begins with "failpoint: ".
package failpoint
