// Package tokentest signs the tokens of clients of test servers.
package tokentest
