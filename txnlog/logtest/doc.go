// Package logtest is the contract of a coordinator's log, which every implementation passes.
package logtest
