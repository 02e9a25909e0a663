package conf

import "github.com/rs/zerolog"

// Log tells the report. Keys that nothing reads are one line together, since a stock file has hundreds of them; one that looks
// misspelt gets a line of its own.
func (r *Report) Log(log zerolog.Logger) {
	for _, u := range r.Unsupported {
		log.Warn().Str("key", u.Key).Str("value", u.Value).Stringer("from", u.Origin).Str("reason", u.Reason).Msg("setting is not supported")
	}
	for _, d := range r.Duplicates {
		log.Warn().Str("key", d.Key).Stringer("used", d.Used).Stringer("ignored", d.Ignored).Msg("setting is given twice")
	}
	for _, warning := range r.Warnings {
		log.Warn().Str("warning", warning).Msg("configuration")
	}
	list := zerolog.Arr()
	for _, u := range r.Unknown {
		list.Str(u.Key + " (" + u.Origin.String() + ")")
		if u.Suggestion != "" {
			log.Warn().Str("key", u.Key).Stringer("from", u.Origin).Str("suggestion", u.Suggestion).Msg("setting is unknown and looks misspelt")
		}
	}
	if len(r.Unknown) > 0 {
		log.Info().Int("count", len(r.Unknown)).Array("keys", list).Msg("settings that nothing here reads")
	}
}
