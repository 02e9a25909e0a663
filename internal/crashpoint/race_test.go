//go:build race

package crashpoint

// everydayScenarios says that an everyday test takes every 97th scenario: the race detector is slow.
const everydayScenarios = 97
