package cluster

import clientv3 "go.etcd.io/etcd/client/v3"

// Member shows a Cluster to what this process owns under its session: it is a topic.Instance.
type Member struct{ *Cluster }

// ID is that of this process.
func (m Member) ID() string { return m.Self().ID }

// Session returns the parts of Cluster.Session.
func (m Member) Session() (lease clientv3.LeaseID, lost <-chan struct{}) {
	session := m.Cluster.Session()
	return session.Lease, session.Lost
}

// Lives reports whether another process is in the view.
func (m Member) Lives(id string) bool {
	_, lives := m.Find(id)
	return lives
}
