// Package archtest holds the import rules of this module as tests: which package may know which, and what the pure cores must
// not touch. Every ban says why it is there.
package archtest
