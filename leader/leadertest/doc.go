// Package leadertest is the contract of leadership, which every implementation passes.
package leadertest
