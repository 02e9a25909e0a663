package resources

// Kind says what is wrong with a request.
type Kind uint8

// The kinds of Error.
const (
	NotFound Kind = iota
	Conflict      // it exists, or something that exists stands in the way
	Invalid       // a value breaks a rule
)

// Error is a refusal. Text is Pulsar's where Pulsar has one.
type Error struct {
	Kind Kind
	Text string
}

func (e *Error) Error() string { return e.Text }

// Refusals, to be compared with errors.Is. Source: NamespacesBase, TenantsBase, ClustersBase.
var (
	ErrTenantNotFound    = &Error{NotFound, "Tenant does not exist"}
	ErrNamespaceNotFound = &Error{NotFound, "Namespace does not exist"}
	ErrClusterNotFound   = &Error{NotFound, "Cluster does not exist"}
	ErrTenantExists      = &Error{Conflict, "Tenant already exists"}
	ErrNamespaceExists   = &Error{Conflict, "Namespace already exists"}
	ErrClusterExists     = &Error{Conflict, "Cluster already exists"}
	ErrTenantNotEmpty    = &Error{Conflict, "The tenant still has active namespaces"}
	ErrNamespaceNotEmpty = &Error{Conflict, "Cannot delete non empty namespace"}
	ErrContended         = &Error{Conflict, "Others change the same value, try again"}
)
