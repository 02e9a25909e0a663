// Command conformance runs the official Go client's own tests, module github.com/apache/pulsar-client-go, against a started
// server: packages pulsar and pulsaradmin/pkg/admin.
//
// The suite comes from the module proxy into a writable copy and is built there. The server gets the configuration file,
// certificates, tokens and passwords of the suite, and the ports that the suite fixes: 6650, 6651, 8080, 8443. Where the
// system allows it, everything runs in a network namespace of its own, so that these ports are free.
//
// testdata/tests.tsv says which test belongs to which tier: T1 needs lookup, produce and consume, T2 transactions, T3 HTTP,
// schemas, authentication or TLS. Tests that pass with no server at all are run and listed, but not counted.
// testdata/known.tsv names the failures that are decisions of the server, with the reason. Of T1 to T3 what else failed is run again,
// alone, and where it passes then the report says at which try. The exit code is 1 if a tier misses its floor.
package main
