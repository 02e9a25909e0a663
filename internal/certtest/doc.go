// Package certtest makes authorities and certificates for tests.
package certtest
