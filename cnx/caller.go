package cnx

// Caller is who sent a command.
type Caller struct {
	Role  string
	Known bool // authentication gave a role
	Super bool // may act on everybody's transactions
}
