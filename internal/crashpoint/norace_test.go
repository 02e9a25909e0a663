//go:build !race

package crashpoint

// everydayScenarios says that an everyday test takes every 23rd scenario.
const everydayScenarios = 23
