// Package memleader decides who leads a coordinator among the contenders of one process's memory, for tests of what stands
// on leadership. It passes the contract of package leadertest.
package memleader
