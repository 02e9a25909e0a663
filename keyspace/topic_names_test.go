package keyspace

import "testing"

func TestParseTopicName(t *testing.T) {
	s := New("p", "c")
	for _, key := range []string{s.TopicName("persistent", "a", "b", "../x/y"), s.Partitioned("persistent", "a", "b", "../x/y")} {
		domain, tenant, namespace, topic, ok := s.ParseTopicName([]byte(key))
		if domain != "persistent" || tenant != "a" || namespace != "b" || topic != "../x/y" || !ok {
			t.Errorf("%s: %s %s %s %s %v", key, domain, tenant, namespace, topic, ok)
		}
	}
	for _, key := range []string{"", s.AllTopicNames(), s.Tenant("a"), s.AllTopicNames() + "a/b/c", s.AllTopicNames() + "a/b/c/%zz", s.AllTopicNames() + "a/b/c/d/e"} {
		if _, _, _, _, ok := s.ParseTopicName([]byte(key)); ok {
			t.Errorf("%q is taken for a topic", key)
		}
	}
}
