package etcdstore

import (
	"errors"
	"fmt"

	"github.com/rs/zerolog"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// unremarkable are warnings of etcd that say nothing about a lonely server: it has no listeners and no authentication, its
// storage version is written with the first raft snapshot, it publishes itself as soon as the first entry is applied, and it
// holds the lock of the segments that it does not purge.
var unremarkable = map[string]bool{
	"simple token is not cryptographically signed":                                                     true,
	"Failed to detect storage schema version. Please wait till wal snapshot before upgrading cluster.": true,
	"Failed to detect schema version":                                                                  true,
	"failed to publish local member to cluster through raft":                                           true,
	"failed to lock file":              true,
	"failed to update storage version": true,
	"Running http and grpc server on single port. This is not recommended for production.": true,
}

// newZap returns a logger for etcd that passes warnings and worse to log. A message that would end the process, fatal or
// panic, is handed to failure instead, and its goroutine goes no further: etcd must not run on behind a failed write, and
// how the process ends is for its owner to say.
func newZap(log zerolog.Logger, failure *failure) *zap.Logger {
	hook := haltHook{failure}
	return zap.New(&zerologCore{log: log}, zap.WithFatalHook(hook), zap.WithPanicHook(hook))
}

// zerologCore is a zapcore.Core over a zerolog.Logger.
type zerologCore struct {
	log    zerolog.Logger
	fields []zapcore.Field
}

func (c *zerologCore) Enabled(level zapcore.Level) bool { return level >= zapcore.WarnLevel }

func (c *zerologCore) With(fields []zapcore.Field) zapcore.Core {
	return &zerologCore{log: c.log, fields: append(c.fields[:len(c.fields):len(c.fields)], fields...)}
}

func (c *zerologCore) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if !c.Enabled(entry.Level) || unremarkable[entry.Message] {
		return checked
	}
	return checked.AddCore(entry, c)
}

func (c *zerologCore) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	level := zerolog.ErrorLevel
	if entry.Level == zapcore.WarnLevel {
		level = zerolog.WarnLevel
	}
	encoder := zapcore.NewMapObjectEncoder()
	for _, field := range c.fields {
		field.AddTo(encoder)
	}
	for _, field := range fields {
		field.AddTo(encoder)
	}
	c.log.WithLevel(level).Str("component", "etcd").Fields(encoder.Fields).Msg(entry.Message)
	return nil
}

func (c *zerologCore) Sync() error { return nil }

// haltHook stops the goroutine that logged a fatal message.
type haltHook struct{ failure *failure }

func (h haltHook) OnWrite(entry *zapcore.CheckedEntry, fields []zapcore.Field) {
	h.failure.set(fatalError(entry.Message, fields))
	select {}
}

// fatalError makes an error of a message and the errors among its fields.
func fatalError(message string, fields []zapcore.Field) error {
	err := errors.New("etcd: " + message)
	for _, field := range fields {
		if cause, is := field.Interface.(error); is && field.Type == zapcore.ErrorType {
			err = fmt.Errorf("%w: %w", err, cause)
		}
	}
	return err
}
