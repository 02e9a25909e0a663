package resources

// Tenant is what is said about a tenant. Source: TenantInfoImpl.
type Tenant struct {
	AdminRoles      []string `json:"adminRoles"`
	AllowedClusters []string `json:"allowedClusters"`
	// Document is the whole stored object.
	Document Document `json:"-"`
}

func parseTenant(value []byte) (*Tenant, error) {
	document, err := stored(value)
	if err != nil {
		return nil, err
	}
	t := &Tenant{Document: document}
	return t, document.Decode(t)
}

// parseCluster reads a cluster, of which nothing is interpreted.
func parseCluster(value []byte) (*Document, error) {
	document, err := stored(value)
	return &document, err
}
