package conf

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// setting is one field of Config as its tags describe it.
type setting struct {
	key         string
	also        []string // other spellings of key
	unit        string
	fallback    string // default
	external    string // default where the store is an etcd cluster, if it differs
	least, most int64  // of a whole number, in unit
	oneOf       []string
	doc         string
	field       int // index in Config
	kind        reflect.Type
}

var durationType = reflect.TypeFor[time.Duration]()

// units are the units of durations. Other units ("bytes") only inform.
var units = map[string]time.Duration{"ms": time.Millisecond, "s": time.Second, "h": time.Hour}

// settings are the fields of Config in order.
var settings = sync.OnceValue(func() []setting {
	config := reflect.TypeFor[Config]()
	all := make([]setting, 0, config.NumField())
	for i := range config.NumField() {
		all = append(all, newSetting(i, config.Field(i)))
	}
	return all
})

// canonicalKeys maps every spelling of an honoured key to its setting.
var canonicalKeys = sync.OnceValue(func() map[string]*setting {
	keys := map[string]*setting{}
	for i := range settings() {
		s := &settings()[i]
		for _, key := range append([]string{s.key}, s.also...) {
			keys[key] = s
		}
	}
	return keys
})

func newSetting(index int, field reflect.StructField) setting {
	s := setting{
		key:      field.Tag.Get("conf"),
		also:     strings.Fields(field.Tag.Get("also")),
		unit:     field.Tag.Get("unit"),
		fallback: field.Tag.Get("default"),
		external: field.Tag.Get("external"),
		doc:      field.Tag.Get("doc"),
		field:    index,
		kind:     field.Type,
	}
	if words := field.Tag.Get("oneof"); words != "" {
		s.oneOf = strings.Split(words, "|")
	}
	s.least, s.most = s.naturalRange()
	if least, most, ok := strings.Cut(field.Tag.Get("range"), ","); ok {
		s.least = mustInt(least, s.least)
		s.most = mustInt(most, s.most)
	}
	return s
}

// naturalRange is what the type of the field holds: Java's int for int, so that a file means the same on every machine; for
// durations what fits the unit.
func (s *setting) naturalRange() (least, most int64) {
	switch {
	case s.kind == durationType:
		unit := int64(units[s.unit])
		return -(math.MaxInt64 / unit), math.MaxInt64 / unit
	case s.kind.Kind() == reflect.Int64:
		return math.MinInt64, math.MaxInt64
	default:
		return math.MinInt32, math.MaxInt32
	}
}

// mustInt reads a bound of a range tag; empty is the natural bound.
func mustInt(text string, natural int64) int64 {
	if text == "" {
		return natural
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic(fmt.Sprintf("range tag %q: %v", text, err))
	}
	return n
}

// rule says in words what a value must be.
func (s *setting) rule() string {
	switch {
	case s.kind.Kind() == reflect.Bool:
		return "true or false"
	case s.kind.Kind() == reflect.String && s.oneOf != nil:
		return strings.Join(s.oneOf, " or ")
	case s.kind.Kind() == reflect.String:
		return "text"
	}
	unit := ""
	if s.unit != "" {
		unit = " (" + s.unit + ")"
	}
	return fmt.Sprintf("a whole number from %d to %d%s", s.least, s.most, unit)
}

// parse turns value, which is not empty, into the field's type. ok is false if it breaks the rule.
func (s *setting) parse(value string) (parsed reflect.Value, ok bool) {
	switch {
	case s.kind.Kind() == reflect.Bool:
		b, ok := parseBool(value)
		return reflect.ValueOf(b), ok
	case s.kind.Kind() == reflect.String:
		return reflect.ValueOf(value), s.oneOf == nil || slices.Contains(s.oneOf, value)
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < s.least || n > s.most {
		return reflect.Value{}, false
	}
	if s.kind == durationType {
		return reflect.ValueOf(saturatedDuration(n, units[s.unit])), true
	}
	return reflect.ValueOf(n).Convert(s.kind), true
}

// parseBool reads true and false in any case. Java's Boolean.valueOf takes every other word for false, which hides a "yes".
func parseBool(value string) (b, ok bool) {
	switch strings.ToLower(value) {
	case "true":
		return true, true
	case "false":
		return false, true
	}
	return false, false
}

// circumstances are what defaults depend on.
type circumstances struct{ withFile, external bool }

// defaultValue is the value of an absent key.
func (s *setting) defaultValue(in circumstances) string {
	switch {
	case in.external && s.external != "":
		return s.external
	case !in.withFile && s.key == "bindAddress":
		return "127.0.0.1"
	case !in.withFile && s.key == "advertisedAddress":
		return "localhost"
	}
	return s.fallback
}
