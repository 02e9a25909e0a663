package server

import (
	"time"

	"github.com/rs/zerolog"

	"github.com/pulsar-tc/pulsar-tc/coordinator"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// logged adds to events the log lines that an operator acts on.
func logged(events coordinator.Events, log zerolog.Logger) coordinator.Events {
	began, ended, failed, behind, resolved := events.TermBegan, events.TermEnded, events.LoadFailed, events.ClockBehind, events.Resolved
	events.TermBegan = func(tc uint64, term int64, transactions, outcomes int, took time.Duration) {
		log.Info().Uint64("tc", tc).Int64("term", term).Int("transactions", transactions).Int("outcomes", outcomes).
			Dur("took_ms", took).Msg("coordinator serves")
		began(tc, term, transactions, outcomes, took)
	}
	events.TermEnded = func(tc uint64, term int64, cause error) {
		log.Info().Uint64("tc", tc).Int64("term", term).AnErr("cause", cause).Msg("term ended")
		if ended != nil {
			ended(tc, term, cause)
		}
	}
	events.LoadFailed = func(tc uint64, err error) {
		log.Error().Uint64("tc", tc).Err(err).Msg("coordinator cannot load, its transactions wait")
		failed(tc, err)
	}
	events.ClockBehind = func(tc uint64, by time.Duration) {
		log.Warn().Uint64("tc", tc).Dur("behind_ms", by).Msg("the clock is behind the ids already used; ids go on from those")
		behind(tc, by)
	}
	events.Resolved = func(tc uint64, id txn.ID, participant txn.Participant, who string) {
		log.Warn().Uint64("tc", tc).Stringer("txn", id).Stringer("participant", participant).Str("operator", who).
			Msg("participant declared done by an operator")
		resolved(tc, id, participant, who)
	}
	return events
}
