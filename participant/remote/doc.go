// Package remote is how a coordinator reaches topics of every process that shares its store: those of its own at once, others
// through the instance that owns them. A topic that nobody owns is loaded where it is placed.
//
// Who owns a topic is read from the store, linearizably, or remembered from the last time that its owner answered. Either may be
// out of date when the end arrives: whoever is not the owner refuses it, and it is asked again by the coordinator, behind its pause.
package remote
