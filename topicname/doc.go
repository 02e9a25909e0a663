// Package topicname parses and prints names of topics and namespaces.
//
// Source: pulsar-common TopicName.java, NamespaceName.java; NamedEntity.java for the characters a part may have.
package topicname
