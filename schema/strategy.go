package schema

// Strategy says which schemas a producer may add to those that a topic has, and which a consumer may bring.
//
// Source: SchemaCompatibilityStrategy.java.
type Strategy string

// The strategies. Undefined stands for that of the next level: topic, namespace, broker.
const (
	Undefined          Strategy = "UNDEFINED"
	AlwaysIncompatible Strategy = "ALWAYS_INCOMPATIBLE"
	AlwaysCompatible   Strategy = "ALWAYS_COMPATIBLE"
	Backward           Strategy = "BACKWARD" // the new schema reads what was written with the last one
	Forward            Strategy = "FORWARD"  // the last schema reads what is written with the new one
	Full               Strategy = "FULL"     // both
	BackwardTransitive Strategy = "BACKWARD_TRANSITIVE"
	ForwardTransitive  Strategy = "FORWARD_TRANSITIVE"
	FullTransitive     Strategy = "FULL_TRANSITIVE"
)

// Transitive reports whether all schemas of the topic count, not the last one alone.
func (s Strategy) Transitive() bool {
	return s == BackwardTransitive || s == ForwardTransitive || s == FullTransitive
}

// ForConsumer returns the strategy by which a consumer's schema is checked, and whether against all schemas of the topic:
// a consumer reads, so most strategies come down to its schema reading what the last one wrote.
//
// Source: SchemaRegistryServiceImpl.checkConsumerCompatibility.
func (s Strategy) ForConsumer() (strategy Strategy, all bool) {
	switch s {
	case Backward, Forward, ForwardTransitive, Full:
		return Backward, false
	}
	return s, true
}

func (s Strategy) backward() bool {
	return s == Backward || s == BackwardTransitive || s == Full || s == FullTransitive
}

func (s Strategy) forward() bool {
	return s == Forward || s == ForwardTransitive || s == Full || s == FullTransitive
}
