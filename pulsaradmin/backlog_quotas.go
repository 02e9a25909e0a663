package pulsaradmin

import (
	"cmp"
	"net/http"

	"github.com/pulsar-tc/pulsar-tc/resources"
	"github.com/pulsar-tc/pulsar-tc/topicname"
)

const backlogMember = "backlog_quota_map"

func (h *handler) routeBacklogQuotas() {
	h.route("GET"+namespacePath+"/backlogQuotaMap", func(c *call) (any, error) {
		found, err := c.policiesOf()
		if err != nil {
			return nil, err
		}
		return quotas(found), nil
	})
	change := func(alter func(*call) (func(map[string]resources.BacklogQuota), error)) func(*call) (any, error) {
		return func(c *call) (any, error) {
			if _, err := c.policiesOf(); err != nil {
				return nil, err
			}
			apply, err := alter(c)
			if err != nil {
				return nil, err
			}
			return nil, h.changeNamespace(c, changeQuotas(apply))
		}
	}
	h.route("POST"+namespacePath+"/backlogQuota", change(setQuota))
	h.route("DELETE"+namespacePath+"/backlogQuota", change(deleteQuota))
}

// routeTopicBacklogQuotas is the same for one topic.
func (h *handler) routeTopicBacklogQuotas(domain string) {
	h.route("GET "+topicPath(domain)+"/backlogQuotaMap", inTopic(domain, administer, func(c *call, name topicname.Name) (any, error) {
		found := h.Resources.Topic(name)
		if found == nil || len(found.BacklogQuotas) == 0 {
			if !c.flag("applied") {
				return map[string]any{}, nil
			}
			var err error
			if found, err = h.namespace(c.Context(), name.NamespaceName()); err != nil {
				return nil, err
			}
		}
		return quotas(found), nil
	}))
	change := func(alter func(*call) (func(map[string]resources.BacklogQuota), error)) func(*call, topicname.Name) (any, error) {
		return func(c *call, name topicname.Name) (any, error) {
			apply, err := alter(c)
			if err != nil {
				return nil, err
			}
			return nil, h.Resources.UpdateTopic(c.Context(), name, changeQuotas(apply))
		}
	}
	h.route("POST "+topicPath(domain)+"/backlogQuota", inTopic(domain, administer, change(setQuota)))
	h.route("DELETE "+topicPath(domain)+"/backlogQuota", inTopic(domain, administer, change(deleteQuota)))
}

// quota is Pulsar's BacklogQuotaImpl.
type quota struct {
	Limit     int64  `json:"limit"`
	LimitSize int64  `json:"limitSize"`
	LimitTime int64  `json:"limitTime"`
	Policy    string `json:"policy"`
}

func quotas(p *resources.Policies) map[string]quota {
	shown := map[string]quota{}
	for kind, q := range p.BacklogQuotas {
		one := quota{Limit: q.Bytes(), LimitSize: q.Bytes(), LimitTime: -1, Policy: q.Policy}
		if q.LimitTime != nil {
			one.LimitTime = int64(*q.LimitTime)
		}
		shown[kind] = one
	}
	return shown
}

func changeQuotas(apply func(map[string]resources.BacklogQuota)) func(resources.Document) error {
	return func(d resources.Document) error {
		var stored resources.Policies
		if err := d.Decode(&stored); err != nil {
			return err
		}
		if stored.BacklogQuotas == nil {
			stored.BacklogQuotas = map[string]resources.BacklogQuota{}
		}
		apply(stored.BacklogQuotas)
		if len(stored.BacklogQuotas) == 0 {
			delete(d, backlogMember)
			return nil
		}
		return d.Set(backlogMember, stored.BacklogQuotas)
	}
}

// quotaType reads which of the two quotas is meant.
func (c *call) quotaType() (string, error) {
	kind := cmp.Or(c.URL.Query().Get("backlogQuotaType"), resources.BacklogSize)
	return kind, checkQuotaType(kind)
}

func checkQuotaType(kind string) error {
	switch kind {
	case resources.BacklogSize, resources.BacklogAge:
		return nil
	}
	return &refusal{http.StatusBadRequest, "backlogQuotaType=" + kind + ": want destination_storage or message_age"}
}

func checkQuota(q resources.BacklogQuota) error {
	switch q.Policy {
	case "producer_request_hold", "producer_exception", "consumer_backlog_eviction":
		return nil
	}
	return badValue("policy=%.60q: want producer_request_hold, producer_exception or consumer_backlog_eviction", q.Policy)
}

func setQuota(c *call) (func(map[string]resources.BacklogQuota), error) {
	kind, err := c.quotaType()
	if err != nil {
		return nil, err
	}
	var given resources.BacklogQuota
	if err := c.need(&given); err != nil {
		return nil, err
	}
	if err := checkQuota(given); err != nil {
		return nil, err
	}
	return func(all map[string]resources.BacklogQuota) { all[kind] = given }, nil
}

func deleteQuota(c *call) (func(map[string]resources.BacklogQuota), error) {
	kind, err := c.quotaType()
	return func(all map[string]resources.BacklogQuota) { delete(all, kind) }, err
}
