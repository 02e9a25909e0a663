package keyspace

import "testing"

// TestSchemaKeys holds the layout: a change here is a change of what is stored.
func TestSchemaKeys(t *testing.T) {
	s := New("p", "c").TopicSchemas("a", "b", "../x/y")
	for got, want := range map[string]string{
		s.Prefix():      "/p/c/schemas/a/b/..%2Fx%2Fy/",
		s.Head():        "/p/c/schemas/a/b/..%2Fx%2Fy/head",
		s.Version(0x2a): "/p/c/schemas/a/b/..%2Fx%2Fy/version/000000000000002a",
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
