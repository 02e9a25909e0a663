package pulsarproto

// AppendWatchTopicListSuccess appends WATCH_TOPIC_LIST_SUCCESS: the topics that match, and their hash.
func AppendWatchTopicListSuccess(dst []byte, requestID, watcherID uint64, topics []string, hash string) []byte {
	return appendReply(dst, &BaseCommand{
		Type: BaseCommand_WATCH_TOPIC_LIST_SUCCESS.Enum(),
		WatchTopicListSuccess: &CommandWatchTopicListSuccess{
			RequestId: &requestID, WatcherId: &watcherID, Topic: topics, TopicsHash: &hash,
		},
	})
}

// AppendWatchTopicUpdate appends WATCH_TOPIC_UPDATE. hash is that of the list behind the update.
func AppendWatchTopicUpdate(dst []byte, watcherID uint64, added, deleted []string, hash string) []byte {
	return appendReply(dst, &BaseCommand{
		Type: BaseCommand_WATCH_TOPIC_UPDATE.Enum(),
		WatchTopicUpdate: &CommandWatchTopicUpdate{
			WatcherId: &watcherID, NewTopics: added, DeletedTopics: deleted, TopicsHash: &hash,
		},
	})
}
