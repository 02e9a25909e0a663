package pulsarproto

// Schema_AutoConsume is the type of a consumer that takes whatever schema the topic has.
//
// Source: PulsarApi.proto of Pulsar 4.0.7, Schema.Type.
const Schema_AutoConsume Schema_Type = 21
