package conf

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/magiconair/properties"
)

// maxFileBytes bounds a configuration file; Pulsar's largest has about 80 KiB.
const maxFileBytes = 4 << 20

// readFile returns the assignments of the properties file at path, in order, and a fault for each line that is not one.
func readFile(path string) ([]assignment, []Fault, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, fmt.Errorf("open configuration: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return nil, nil, fmt.Errorf("read configuration %s: %w", path, err)
	}
	if len(text) > maxFileBytes {
		return nil, nil, fmt.Errorf("read configuration %s: longer than %d bytes", path, maxFileBytes)
	}
	assignments, faults := parseProperties(path, text)
	return assignments, faults, nil
}

// parseProperties reads Java properties (java.util.Properties.load). The library knows separators and escapes but neither
// lines nor duplicates, so it gets one logical line at a time.
func parseProperties(path string, text []byte) ([]assignment, []Fault) {
	loader := properties.Loader{Encoding: properties.UTF8, DisableExpansion: true}
	var assignments []assignment
	var faults []Fault
	for _, line := range logicalLines(decodeText(text)) {
		origin := Origin{Kind: File, File: path, Line: line.number}
		parsed, err := loader.LoadBytes([]byte(line.text))
		if err != nil || parsed.Len() != 1 {
			faults = append(faults, Fault{Origin: origin, Rule: "the line must be key=value in the syntax of Java properties"})
			continue
		}
		key := parsed.Keys()[0]
		value, _ := parsed.Get(key)
		origin.Key = key
		assignments = append(assignments, assignment{key: key, value: strings.TrimSpace(value), origin: origin})
	}
	return assignments, faults
}

// decodeText returns UTF-8 without a byte order mark. A file that is not UTF-8 is read as ISO-8859-1, as Java does.
func decodeText(text []byte) string {
	if utf8.Valid(text) {
		return strings.TrimPrefix(string(text), "\ufeff")
	}
	runes := make([]rune, len(text))
	for i, b := range text {
		runes[i] = rune(b)
	}
	return string(runes)
}

// logicalLine is a line with its continuations, neither blank nor a comment.
type logicalLine struct {
	number int // of its first natural line, from 1
	text   string
}

const blanks = " \t\f"

// logicalLines joins natural lines that end in an odd number of backslashes with their next one. Comments have no continuation.
func logicalLines(text string) []logicalLine {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	natural := strings.Split(strings.ReplaceAll(text, "\r", "\n"), "\n")
	var lines []logicalLine
	for i := 0; i < len(natural); i++ {
		trimmed := strings.TrimLeft(natural[i], blanks)
		if trimmed == "" || trimmed[0] == '#' || trimmed[0] == '!' {
			continue
		}
		line := logicalLine{number: i + 1, text: trimmed}
		for continues(line.text) && i+1 < len(natural) {
			i++
			line.text = line.text[:len(line.text)-1] + strings.TrimLeft(natural[i], blanks)
		}
		lines = append(lines, line)
	}
	return lines
}

// continues reports that line ends in an odd number of backslashes.
func continues(line string) bool {
	backslashes := len(line) - len(strings.TrimRight(line, `\`))
	return backslashes%2 == 1
}
