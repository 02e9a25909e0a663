package conn

import (
	"unicode/utf8"

	"github.com/pulsar-tc/pulsar-tc/topicname"
)

// parseTopic reads the name of a topic in a client's command. One that is no UTF-8 is refused: in JSON it is shown as another name,
// which no administrator could use. Pulsar's names are Unicode. Errors: *topicname.Error.
func parseTopic(text string) (topicname.Name, error) {
	if !utf8.ValidString(text) {
		return topicname.Name{}, &topicname.Error{Name: text, Rule: "it is no UTF-8"}
	}
	return topicname.Parse(text)
}
