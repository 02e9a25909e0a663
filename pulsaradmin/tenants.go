package pulsaradmin

import (
	"slices"

	"github.com/pulsar-tc/pulsar-tc/resources"
)

func (h *handler) routeTenants() {
	h.route("GET /admin/v2/tenants", h.listTenants)
	h.route("GET /admin/v2/tenants/{tenant}", h.getTenant)
	h.route("PUT /admin/v2/tenants/{tenant}", h.createTenant)
	h.route("POST /admin/v2/tenants/{tenant}", h.updateTenant)
	h.route("DELETE /admin/v2/tenants/{tenant}", h.deleteTenant)
}

func (h *handler) listTenants(c *call) (any, error) {
	if err := c.super("tenants"); err != nil {
		return nil, err
	}
	return h.Resources.Tenants(), nil
}

// ofTenant checks that a super user names a tenant.
func (c *call) ofTenant() (string, error) {
	if err := c.super("tenants"); err != nil {
		return "", err
	}
	return c.tenantOf()
}

func (h *handler) getTenant(c *call) (any, error) {
	tenant, err := c.ofTenant()
	if err != nil {
		return nil, err
	}
	found := h.Resources.Tenant(tenant)
	if found == nil {
		return nil, resources.ErrTenantNotFound
	}
	clusters := found.AllowedClusters
	if len(clusters) == 0 { // of a tenant that nobody said anything about
		clusters = []string{h.Broker.Cluster}
	}
	return tenantInfo{orEmpty(found.AdminRoles), clusters}, nil
}

// tenantInfo is Pulsar's TenantInfoImpl.
type tenantInfo struct {
	Admins   []string `json:"adminRoles"`
	Clusters []string `json:"allowedClusters"`
}

func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// readTenant reads a tenant and checks that its clusters exist.
func (h *handler) readTenant(c *call) (resources.Document, error) {
	document := resources.Document{}
	if _, err := c.read(&document); err != nil {
		return nil, err
	}
	var info tenantInfo
	if err := document.Decode(&info); err != nil {
		return nil, badBody(err)
	}
	if len(info.Clusters) == 0 {
		return nil, badValue("Clusters can not be empty")
	}
	known := h.Resources.Clusters()
	for _, cluster := range info.Clusters {
		if !slices.Contains(known, cluster) {
			return nil, badValue("Clusters do not exist: %.100q", cluster)
		}
	}
	return document, nil
}

func (h *handler) createTenant(c *call) (any, error) {
	tenant, err := c.ofTenant()
	if err != nil {
		return nil, err
	}
	document, err := h.readTenant(c)
	if err != nil {
		return nil, err
	}
	return nil, h.Resources.CreateTenant(c.Context(), tenant, document)
}

func (h *handler) updateTenant(c *call) (any, error) {
	tenant, err := c.ofTenant()
	if err != nil {
		return nil, err
	}
	document, err := h.readTenant(c)
	if err != nil {
		return nil, err
	}
	return nil, h.Resources.UpdateTenant(c.Context(), tenant, func(d resources.Document) error {
		for member, value := range document {
			d[member] = value
		}
		return nil
	})
}

// deleteTenant deletes a tenant; force deletes its namespaces with all their topics first.
func (h *handler) deleteTenant(c *call) (any, error) {
	tenant, err := c.ofTenant()
	if err != nil {
		return nil, err
	}
	if c.flag("force") {
		namespaces, err := h.Resources.Namespaces(tenant)
		if err != nil {
			return nil, err
		}
		for _, namespace := range namespaces {
			if err := h.emptyAndDelete(c, namespace); err != nil {
				return nil, err
			}
		}
	}
	return nil, h.Resources.DeleteTenant(c.Context(), tenant)
}
