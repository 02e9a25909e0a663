// Package activeconsumer says which consumer of an Exclusive or Failover subscription is given the messages: a pure core.
//
// The choice rests on the names and priority levels alone, not on who came first, so that every broker, and the same one after a
// restart, chooses the same, and the topics of an application spread over its consumers.
package activeconsumer
