package txn

import (
	"math"
	"testing"
)

func TestParseID(t *testing.T) {
	for text, want := range map[string]ID{
		"(1,2)":                    {1, 2},
		" ( 1, 2 ) ":               {1, 2},
		"1,2":                      {1, 2},
		"{1 2}":                    {1, 2},
		"(18446744073709551615,0)": {math.MaxUint64, 0},
	} {
		got, err := ParseID(text)
		if err != nil || got != want {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
		if again, err := ParseID(got.String()); err != nil || again != got {
			t.Errorf("%v does not read back: %v, %v", got, again, err)
		}
	}
	for _, text := range []string{"", "(1)", "(1,2", "1 2", "{1,2}", "(a,2)", "(1,b)", "(-1,2)", "(1,18446744073709551616)", "(1,2,3)"} {
		if got, err := ParseID(text); err == nil {
			t.Errorf("%q is taken for %v", text, got)
		}
	}
}
