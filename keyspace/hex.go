package keyspace

import "github.com/pulsar-tc/pulsar-tc/txn"

const (
	hexDigits = "0123456789abcdef"
	hexSize   = 16 // digits of a number
)

// appendHex appends n as 16 hex digits.
func appendHex(key []byte, n uint64) []byte {
	for shift := 60; shift >= 0; shift -= 4 {
		key = append(key, hexDigits[n>>shift&15])
	}
	return key
}

func appendTxn(key []byte, id txn.ID) []byte { return appendHex(appendHex(key, id.Most), id.Least) }

// parser takes parts off the front of a key. After a failure every part is zero.
type parser struct {
	key    []byte
	failed bool
}

func (p *parser) fail() { p.failed, p.key = true, nil }

func (p *parser) text(want string) {
	if len(p.key) < len(want) || string(p.key[:len(want)]) != want {
		p.fail()
		return
	}
	p.key = p.key[len(want):]
}

func (p *parser) hex() uint64 {
	if len(p.key) < 16 {
		p.fail()
		return 0
	}
	var n uint64
	for _, c := range p.key[:16] {
		switch {
		case c >= '0' && c <= '9':
			n = n<<4 | uint64(c-'0')
		case c >= 'a' && c <= 'f':
			n = n<<4 | uint64(c-'a'+10)
		default:
			p.fail()
			return 0
		}
	}
	p.key = p.key[16:]
	return n
}

func (p *parser) txn() txn.ID { return txn.ID{Most: p.hex(), Least: p.hex()} }

func (p *parser) end() bool { return !p.failed && len(p.key) == 0 }
