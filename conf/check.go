package conf

import (
	"fmt"
	"io"
	"reflect"
	"strings"
	"text/tabwriter"
	"time"
)

// Check loads sources and writes the effective settings and everything a start would say about them to w. It returns the
// error of Load, which is not written.
func Check(w io.Writer, sources Sources) error {
	config, report, err := Load(sources)
	if config != nil {
		if err := config.write(w, report); err != nil {
			return err
		}
	}
	if _, writeErr := io.WriteString(w, report.text()); writeErr != nil {
		return fmt.Errorf("write report: %w", writeErr)
	}
	return err
}

// write writes one line a setting: key, value in the unit of the key, origin.
func (c *Config) write(w io.Writer, report *Report) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "KEY\tVALUE\tFROM")
	fields := reflect.ValueOf(c).Elem()
	for i := range settings() {
		s := &settings()[i]
		fmt.Fprintf(table, "%s\t%s\t%s\n", s.key, shown(s.key, s.text(fields.Field(s.field))), report.Origin(s.key))
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("write settings: %w", err)
	}
	return nil
}

// text is value as a file would have it, with its unit if it has one.
func (s *setting) text(value reflect.Value) string {
	text := fmt.Sprint(value.Interface())
	if s.kind == durationType {
		text = fmt.Sprint(value.Int() / int64(units[s.unit]/time.Nanosecond))
	}
	if s.unit == "" {
		return text
	}
	return text + " " + s.unit
}

// text lists the parts of the report that are not empty: keys that nothing reads in one paragraph, since a stock file has hundreds
// of them, and what an operator has to know at the end.
func (r *Report) text() string {
	var b strings.Builder
	b.WriteString(r.unread())
	for _, u := range r.Unsupported {
		fmt.Fprintf(&b, "not supported: %s: %s=%q: %s\n", u.Origin, u.Key, u.Value, u.Reason)
	}
	for _, d := range r.Duplicates {
		fmt.Fprintf(&b, "duplicate: %s: %s again, wins over %s\n", d.Used, d.Key, d.Ignored)
	}
	for _, u := range r.Unknown {
		if u.Suggestion != "" {
			fmt.Fprintf(&b, "unknown: %s: %s (did you mean %s?)\n", u.Origin, u.Key, u.Suggestion)
		}
	}
	for _, warning := range r.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", warning)
	}
	return b.String()
}

// unread names the keys that nothing here reads and that no known key looks like, in lines of up to lineWidth bytes.
func (r *Report) unread() string {
	const lineWidth = 120
	var b strings.Builder
	count, width := 0, lineWidth
	for _, u := range r.Unknown {
		if u.Suggestion != "" {
			continue
		}
		count++
		if width+1+len(u.Key) > lineWidth {
			b.WriteString("\n ")
			width = 1
		}
		b.WriteString(" " + u.Key)
		width += 1 + len(u.Key)
	}
	if count == 0 {
		return ""
	}
	return fmt.Sprintf("keys that nothing here reads: %d%s\n", count, b.String())
}
