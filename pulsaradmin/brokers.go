package pulsaradmin

import (
	"cmp"
	"net/http"
	"strings"
)

// Broker is this process as clients know it. Addresses of listeners that are off are empty.
type Broker struct {
	ID            string // host:port of HTTP
	Cluster       string
	WebURL        string
	WebURLTLS     string
	ServiceURL    string
	ServiceURLTLS string
	Version       string
	// Ready reports whether everything serves; if not, why.
	Ready func() error
}

func (h *handler) routeBrokers() {
	const path = "/admin/v2/brokers"
	h.route("GET "+path, h.superOnly(func(*call) (any, error) { return h.brokers(), nil }))
	h.route("GET "+path+"/{cluster}", h.superOnly(h.brokersOfCluster))
	h.route("GET "+path+"/leaderBroker", h.superOnly(h.leaderBroker))
	h.route("GET "+path+"/health", h.health)
	h.route("GET "+path+"/ready", h.health)
	h.route("GET "+path+"/version", func(*call) (any, error) { return plainText(h.Broker.Version), nil })
	h.route("GET "+path+"/configuration", h.superOnly(func(*call) (any, error) { return []string{}, nil }))
	h.route("GET "+path+"/configuration/values", h.superOnly(func(*call) (any, error) { return map[string]string{}, nil }))
	h.route("POST "+path+"/configuration/{name}/{value}", h.superOnly(noDynamicSettings))
	h.route("DELETE "+path+"/configuration/{name}", h.superOnly(noDynamicSettings))
}

func (h *handler) superOnly(answer func(*call) (any, error)) func(*call) (any, error) {
	return func(c *call) (any, error) {
		if err := c.super("brokers"); err != nil {
			return nil, err
		}
		return answer(c)
	}
}

func (h *handler) brokersOfCluster(c *call) (any, error) {
	if c.PathValue("cluster") != h.Broker.Cluster {
		return nil, &refusal{http.StatusNotFound, "Cluster does not exist"}
	}
	return h.brokers(), nil
}

// brokers are the ids of all processes that share the store.
func (h *handler) brokers() []string {
	if h.Instances == nil {
		return []string{h.Broker.ID}
	}
	ids := []string{}
	for _, instance := range h.Instances.Instances() {
		_, id, _ := strings.Cut(cmp.Or(instance.WebURL, instance.WebURLTLS), "://")
		ids = append(ids, id)
	}
	return ids
}

func (h *handler) leaderBroker(*call) (any, error) {
	return map[string]string{"brokerId": h.Broker.ID, "serviceUrl": h.Broker.WebURL}, nil
}

// health is for load balancers, who have no role. Pulsar calls the plain word JSON.
func (h *handler) health(*call) (any, error) {
	if err := h.Broker.Ready(); err != nil {
		return nil, &refusal{http.StatusServiceUnavailable, err.Error()}
	}
	return &reply{http.StatusOK, http.Header{"Content-Type": {"application/json"}}, []byte("ok")}, nil
}

// noDynamicSettings says that no setting changes while the process runs.
//
// Source: BrokersBase.updateDynamicConfiguration answers a setting that is not dynamic so.
func noDynamicSettings(c *call) (any, error) {
	return nil, badValue("Can't update non-dynamic configuration: %.100q; settings are read at the start", c.PathValue("name"))
}
