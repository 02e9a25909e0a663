package pulsaradmin

import (
	"encoding/json"

	"github.com/pulsar-tc/pulsar-tc/resources"
	"github.com/pulsar-tc/pulsar-tc/topicname"
)

func (h *handler) routeClusters() {
	h.route("GET /admin/v2/clusters", func(*call) (any, error) { return h.Resources.Clusters(), nil })
	h.route("GET /admin/v2/clusters/{cluster}", h.getCluster)
	h.route("PUT /admin/v2/clusters/{cluster}", h.createCluster)
	h.route("POST /admin/v2/clusters/{cluster}", h.updateCluster)
	h.route("DELETE /admin/v2/clusters/{cluster}", h.deleteCluster)
}

func (c *call) ofCluster() (string, error) {
	if err := c.super("clusters"); err != nil {
		return "", err
	}
	cluster := c.PathValue("cluster")
	if !topicname.ValidPart(cluster) {
		return "", badValue("Cluster name is not valid: %.100q", cluster)
	}
	return cluster, nil
}

// getCluster answers what was said about a cluster, and the addresses of this process where nothing was said about its own.
func (h *handler) getCluster(c *call) (any, error) {
	cluster, err := c.ofCluster()
	if err != nil {
		return nil, err
	}
	found := h.Resources.Cluster(cluster)
	if found == nil {
		return nil, resources.ErrClusterNotFound
	}
	if cluster != h.Broker.Cluster {
		return found, nil
	}
	answer := map[string]any{
		"serviceUrl": h.Broker.WebURL, "serviceUrlTls": h.Broker.WebURLTLS,
		"brokerServiceUrl": h.Broker.ServiceURL, "brokerServiceUrlTls": h.Broker.ServiceURLTLS,
	}
	for member, value := range *found {
		answer[member] = json.RawMessage(value)
	}
	return answer, nil
}

func (h *handler) createCluster(c *call) (any, error) {
	cluster, err := c.ofCluster()
	if err != nil {
		return nil, err
	}
	var document resources.Document
	if err := c.need(&document); err != nil {
		return nil, err
	}
	return nil, h.Resources.CreateCluster(c.Context(), cluster, document)
}

func (h *handler) updateCluster(c *call) (any, error) {
	cluster, err := c.ofCluster()
	if err != nil {
		return nil, err
	}
	var document resources.Document
	if err := c.need(&document); err != nil {
		return nil, err
	}
	return nil, h.Resources.UpdateCluster(c.Context(), cluster, func(d resources.Document) error {
		clear(d)
		for member, value := range document {
			d[member] = value
		}
		return nil
	})
}

func (h *handler) deleteCluster(c *call) (any, error) {
	cluster, err := c.ofCluster()
	if err != nil {
		return nil, err
	}
	if cluster == h.Broker.Cluster {
		return nil, badValue("Cluster %s is this one and can not be deleted", cluster)
	}
	return nil, h.Resources.DeleteCluster(c.Context(), cluster)
}
