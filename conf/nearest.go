package conf

import "strings"

// maxEdits is how far a misspelt key may be from the key it suggests.
const maxEdits = 2

// nearestKey returns the honoured key that key was probably meant to be; empty if there is none.
func nearestKey(key string) string {
	best, bestEdits := "", maxEdits+1
	for i := range settings() {
		candidate := settings()[i].key
		if edits := editDistance(strings.ToLower(key), strings.ToLower(candidate)); edits < bestEdits {
			best, bestEdits = candidate, edits
		}
	}
	return best
}

// editDistance counts insertions, deletions and replacements of bytes that turn a into b. It stops counting at lengths that
// differ by more than maxEdits.
func editDistance(a, b string) int {
	if len(a)-len(b) > maxEdits || len(b)-len(a) > maxEdits {
		return maxEdits + 1
	}
	previous := make([]int, len(b)+1)
	current := make([]int, len(b)+1)
	for j := range previous {
		previous[j] = j
	}
	for i := range len(a) {
		current[0] = i + 1
		for j := range len(b) {
			replace := previous[j]
			if a[i] != b[j] {
				replace++
			}
			current[j+1] = min(replace, previous[j+1]+1, current[j]+1)
		}
		previous, current = current, previous
	}
	return previous[len(b)]
}
