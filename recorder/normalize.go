package recorder

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// What differs from run to run in texts of a server.
var (
	idPair         = regexp.MustCompile(`\((-?\d+),\s*(-?\d+)\)`)
	hostPort       = regexp.MustCompile(`/?(\d+\.\d+\.\d+\.\d+|localhost):\d+`)
	position       = regexp.MustCompile(`\b\d+:-?\d+(:-?\d+)?\b`)
	requestID      = regexp.MustCompile(`(?i)(request_?id|requestId)\s*[:=]?\s*\d+`)
	producerName   = regexp.MustCompile(`standalone-\d+-\d+`)
	javaIdentity   = regexp.MustCompile(`@[0-9a-f]{5,8}\b`)
	milliseconds   = regexp.MustCompile(`\b1[6-9]\d{11}\b`)
	significantBit = regexp.MustCompile(`(?i)((?:most|least)SigBits\s*[=:]\s*)(\d+)`)
)

// normalize replaces it by symbols.
func (r *recording) normalize(text string) string {
	text = strings.NewReplacer(r.target.Run, "RUN", "\n", "\\n", "\t", " ", "\r", "").Replace(text)
	text = hostPort.ReplaceAllString(text, "ADDR")
	text = idPair.ReplaceAllStringFunc(text, func(pair string) string {
		halves := idPair.FindStringSubmatch(pair)
		name, ok := r.names[leastBits(halves[2])]
		if !ok {
			name = "N"
		}
		return "(" + halves[1] + "," + name + ")"
	})
	text = significantBit.ReplaceAllStringFunc(text, func(bits string) string {
		parts := significantBit.FindStringSubmatch(bits)
		name, ok := r.names[leastBits(parts[2])]
		if !ok || !strings.HasPrefix(strings.ToLower(parts[1]), "l") {
			return bits
		}
		return parts[1] + name
	})
	text = milliseconds.ReplaceAllString(text, "MS")
	text = position.ReplaceAllString(text, "L:E")
	text = requestID.ReplaceAllString(text, "${1}=R")
	text = producerName.ReplaceAllString(text, "PNAME")
	return javaIdentity.ReplaceAllString(text, "@H")
}

// leastBits reads an id half that Java prints signed and we print unsigned. What is neither is no known id.
func leastBits(text string) uint64 {
	if unsigned, err := strconv.ParseUint(text, 10, 64); err == nil {
		return unsigned
	}
	signed, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic(fmt.Sprintf("id half %q: %v", text, err)) // the pattern lets digits through only
	}
	return uint64(signed)
}
