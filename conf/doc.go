// Package conf reads the settings of a pulsar-tc process: Pulsar's broker.conf, standalone.conf and proxy.conf as they are
// shipped, the environment as Pulsar's images use it, and key=value pairs of the command line.
//
// Sources, each winning over the ones before it:
//
//	default      the default tag of Config; a few depend on the store or on whether there is a file
//	file         Java properties; an empty value means unset, which is the default
//	environment  key=value with the bare name of a known key, then PULSAR_PREFIX_key=value with any key
//	--set        key=value
//
// A value arrives byte for byte as it was given, except that blanks around it are cut off. Key names match exactly, case
// included.
//
// Invariants:
//
//   - Load finds every fault of every source in one pass and says where it stands, what was given and which rule it breaks.
//   - A key is honoured (a field of Config), known but not honoured (notHonoured, with a reason), or unknown. Nothing is
//     dropped in silence: all three are in the Report.
//   - A key that asks for TLS, authentication or authorization in a way that cannot be honoured is a fault: the process never
//     runs more open than its settings say (C-2).
//   - The values of secret keys appear in no text that this package makes.
package conf

//go:generate go test -run TestMarkdown -rewrite
