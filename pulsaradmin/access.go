package pulsaradmin

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/pulsar-tc/pulsar-tc/topicname"
)

// super asks for a super user.
func (c *call) super(what string) error {
	if c.h.Rights == nil {
		return nil
	}
	return c.h.Rights.Super(c.caller, what)
}

// tenantOf returns the tenant in the path, for an admin of it.
func (c *call) tenantOf() (string, error) {
	tenant := c.PathValue("tenant")
	if !topicname.ValidPart(tenant) {
		return "", badValue("Tenant name is not valid: %.100q", tenant)
	}
	if c.h.Rights == nil {
		return tenant, nil
	}
	return tenant, c.h.Rights.Tenant(c.Context(), c.caller, tenant)
}

// namespaceOf returns tenant/namespace of the path, for an admin of the tenant.
func (c *call) namespaceOf() (string, error) {
	tenant, err := c.tenantOf()
	if err != nil {
		return "", err
	}
	return c.namespaceIn(tenant)
}

func (c *call) namespaceIn(tenant string) (string, error) {
	namespace := c.PathValue("namespace")
	if !topicname.ValidPart(tenant) || !topicname.ValidPart(namespace) {
		return "", badValue("Namespace name is not valid: %.100q", tenant+"/"+namespace)
	}
	return tenant + "/" + namespace, nil
}

// topicsOf returns tenant/namespace of the path, which exists, for those who may see its topics.
func (c *call) topicsOf() (string, error) {
	namespace, err := c.namespaceIn(c.PathValue("tenant"))
	if err != nil {
		return "", err
	}
	if c.h.Rights != nil {
		if err := c.h.Rights.ListTopics(c.Context(), c.caller, namespace); err != nil {
			return "", err
		}
	}
	_, err = c.h.namespace(c.Context(), namespace)
	return namespace, err
}

// right is what a caller wants of a topic.
type right uint8

const (
	administer right = iota // an admin of the tenant
	find                    // who may produce or consume
	consume
)

// topicOf returns the topic in the path, for a caller with the right.
func (c *call) topicOf(domain string, wanted right) (topicname.Name, error) {
	name, err := c.topicNamed(domain)
	if err != nil || c.h.Rights == nil {
		return name, err
	}
	return name, c.mayUse(name, wanted)
}

// topicNamed returns the topic in the path.
func (c *call) topicNamed(domain string) (topicname.Name, error) {
	return topicname.Parse(domain + "://" + c.PathValue("tenant") + "/" + c.PathValue("namespace") + "/" + c.topicValue())
}

// topicValue is the local name of the topic in the path, of which clients make a space a plus sign and a plus sign %2B.
//
// Source: PersistentTopics, @Encoded encodedTopic; TopicName.getEncodedLocalName; Codec.
func (c *call) topicValue() string {
	local, err := url.QueryUnescape(c.raw("topic"))
	if err != nil { // the path would not have been routed
		return c.PathValue("topic")
	}
	return local
}

// raw returns a part of the path as it came.
func (c *call) raw(part string) string {
	at := slices.Index(strings.Split(c.Pattern, "/"), "{"+part+"}")
	segments := strings.Split(c.URL.EscapedPath(), "/")
	if at < 0 || at >= len(segments) {
		return ""
	}
	return segments[at]
}

func (c *call) mayUse(name topicname.Name, wanted right) error {
	rights := c.h.Rights
	switch wanted {
	case find:
		return rights.Lookup(c.Context(), c.caller, name)
	case consume:
		subscription := "" // any
		if c.PathValue("subscription") != "" {
			var err error
			if subscription, err = c.subscription(); err != nil {
				return err
			}
		}
		return rights.Consume(c.Context(), c.caller, name, subscription)
	}
	return rights.Tenant(c.Context(), c.caller, name.Tenant)
}

// domainOf returns the domain in the path of a call that serves several.
func (c *call) domainOf() (string, error) {
	switch domain := c.PathValue("domain"); domain {
	case topicname.Persistent, topicname.NonPersistent:
		return domain, nil
	default:
		return "", &refusal{http.StatusNotFound, "HTTP 404 Not Found"}
	}
}
