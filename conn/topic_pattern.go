package conn

import (
	"fmt"
	"hash/crc32"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pulsar-tc/pulsar-tc/cnx"
	"github.com/pulsar-tc/pulsar-tc/pulsarproto"
	"github.com/pulsar-tc/pulsar-tc/topicname"
)

// topicPattern selects topics by their names without domain and partition.
type topicPattern struct{ expression *regexp.Regexp }

// topicPattern reads a client's pattern. Errors: NotAllowedError for one that is not matched here; the client does it itself.
//
// Source: TopicListService.handleWatchTopicList; TopicList.filterTopics, removeTopicDomainScheme.
func (o *Options) topicPattern(text string) (topicPattern, error) {
	refuse := func(format string, args ...any) (topicPattern, error) {
		return topicPattern{}, cnx.Refuse(pulsarproto.ServerError_NotAllowedError, fmt.Sprintf(format, args...))
	}
	switch {
	case o.MaxPatternLength < 0:
		return refuse("Evaluating subscription patterns is disabled.")
	case utf8.RuneCountInString(text) > o.MaxPatternLength:
		return refuse("Pattern longer than maximum: %d", o.MaxPatternLength)
	}
	domain, rest, found := strings.Cut(text, "://")
	if found {
		before, ok := strings.CutSuffix(domain, topicname.Persistent)
		if !ok {
			return refuse("Does not support topic domain: %q", domain)
		}
		text = strings.TrimSuffix(before, "non-") + rest
	}
	if _, err := regexp.Compile(text); err != nil {
		return refuse("Pattern %q is no RE2 expression: %v", text, err)
	}
	expression, err := regexp.Compile(`\A(?:` + text + `)\z`)
	if err != nil {
		return refuse("Pattern %q is no RE2 expression: %v", text, err)
	}
	return topicPattern{expression}, nil
}

// matches reports whether the pattern selects a topic by its full name.
func (p topicPattern) matches(name topicname.Name) bool {
	return p.expression.MatchString(name.NamespaceName() + "/" + name.Base().Local)
}

// filter returns those of topics, full names, that the pattern selects.
func (p topicPattern) filter(topics []string) []string {
	return slices.DeleteFunc(slices.Clone(topics), func(topic string) bool {
		name, err := topicname.Parse(topic)
		return err != nil || !p.matches(name)
	})
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// topicsHash is the hash of a list of topics, which are sorted: CRC-32C of the names with commas between them, its bytes in
// hex, least significant first.
//
// Source: TopicList.calculateHash, compared with what Pulsar 4.0.7 computes.
func topicsHash(topics []string) string {
	sum := uint32(0)
	for i, topic := range topics {
		if i > 0 {
			sum = crc32.Update(sum, castagnoli, []byte{','})
		}
		sum = crc32.Update(sum, castagnoli, []byte(topic))
	}
	return fmt.Sprintf("%02x%02x%02x%02x", byte(sum), byte(sum>>8), byte(sum>>16), byte(sum>>24))
}
