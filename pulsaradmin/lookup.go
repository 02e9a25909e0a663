package pulsaradmin

import (
	"github.com/pulsar-tc/pulsar-tc/topicname"
)

func (h *handler) routeLookup() {
	h.route("GET /lookup/v2/topic/{domain}/{tenant}/{namespace}/{topic}", h.lookupTopic)
	h.route("GET /lookup/v2/topic/{domain}/{tenant}/{namespace}/{topic}/bundle", h.bundleOfTopic)
}

// lookedUp is Pulsar's LookupData. nativeUrl is brokerUrl for old clients.
type lookedUp struct {
	BrokerURL    string `json:"brokerUrl,omitempty"`
	BrokerURLTLS string `json:"brokerUrlTls,omitempty"`
	HTTPURL      string `json:"httpUrl,omitempty"`
	HTTPURLTLS   string `json:"httpUrlTls,omitempty"`
	NativeURL    string `json:"nativeUrl,omitempty"`
}

// found returns the topic in the path of a lookup, for callers who may use it, if its namespace exists.
func (c *call) found() (topicname.Name, error) {
	domain, err := c.domainOf()
	if err != nil {
		return topicname.Name{}, err
	}
	name, err := c.topicOf(domain, find)
	if err != nil {
		return name, err
	}
	_, err = c.h.namespace(c.Context(), name.NamespaceName())
	return name, err
}

// lookupTopic answers the process that serves a topic, or is to serve it.
func (h *handler) lookupTopic(c *call) (any, error) {
	name, err := c.found()
	if err != nil {
		return nil, err
	}
	b := h.Broker
	if h.Instances == nil {
		return lookedUp{b.ServiceURL, b.ServiceURLTLS, b.WebURL, b.WebURLTLS, b.ServiceURL}, nil
	}
	owner, err := h.Instances.Owner(c.Context(), name)
	if err != nil {
		return nil, err
	}
	return lookedUp{owner.ServiceURL, owner.ServiceURLTLS, owner.WebURL, owner.WebURLTLS, owner.ServiceURL}, nil
}

func (h *handler) bundleOfTopic(c *call) (any, error) {
	if _, err := c.found(); err != nil {
		return nil, err
	}
	return plainText("0x00000000_0xffffffff"), nil
}
