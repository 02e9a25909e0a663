package fsm_test

import (
	"errors"
	"fmt"
	"strings"

	"github.com/pulsar-tc/pulsar-tc/coordinator/fsm"
	"github.com/pulsar-tc/pulsar-tc/txn"
)

// render writes a Ready as the lines of a script: everything that is in it. index is where its batch goes.
func render(r *fsm.Ready, index uint64) string {
	var b strings.Builder
	if r.Batch.Next != 0 {
		fmt.Fprintf(&b, "next   %d\n", r.Batch.Next)
	}
	for i := range r.Batch.Changes {
		fmt.Fprintf(&b, "append %d %s\n", index, change(&r.Batch.Changes[i]))
	}
	if r.Batch.DropBefore != 0 {
		fmt.Fprintf(&b, "drop   before %d\n", r.Batch.DropBefore)
	}
	if r.NeedsProof && !r.Writes() {
		b.WriteString("prove\n")
	}
	for _, e := range effects(r) {
		fmt.Fprintf(&b, "after  %s\n", effect(&e))
	}
	if r.Clean {
		b.WriteString("clean\n")
	}
	if b.Len() == 0 {
		return "nothing\n"
	}
	return b.String()
}

// effects are those of r, as if its batch were durable.
func effects(r *fsm.Ready) []fsm.Effect {
	all, err := r.Effects(func() error { return nil })
	if err != nil {
		panic(err) // nothing failed
	}
	return all
}

var ops = map[txn.Op]string{
	txn.OpNew: "NEW", txn.OpAddPartition: "ADD_PARTITION", txn.OpAddSubscription: "ADD_SUBSCRIPTION", txn.OpUpdate: "UPDATE",
	txn.OpSnapshot: "SNAPSHOT", txn.OpResolve: "RESOLVE", txn.OpOutcome: "OUTCOME", txn.OpForget: "FORGET",
}

func change(c *txn.Change) string {
	r := &c.Record
	var b strings.Builder
	fmt.Fprintf(&b, "%s (1,%d)", ops[r.Op], r.Least)
	switch r.Op {
	case txn.OpUpdate:
		fmt.Fprintf(&b, " %s->%s", r.Expected, r.Status)
	case txn.OpSnapshot, txn.OpOutcome:
		fmt.Fprintf(&b, " %s", r.Status)
	}
	if r.Place != 0 {
		fmt.Fprintf(&b, " place=%d", r.Place)
	}
	if r.Change != 0 {
		fmt.Fprintf(&b, " change=%d", r.Change)
	}
	if r.Owner.Known {
		fmt.Fprintf(&b, " owner=%s", r.Owner.Role)
	}
	if r.ClientName != "" {
		fmt.Fprintf(&b, " name=%s", brief(r.ClientName))
	}
	if r.TimeoutMillis != 0 {
		fmt.Fprintf(&b, " opened=%d ttl=%d", r.StartTime, r.TimeoutMillis)
	}
	if r.TimedOut {
		b.WriteString(" timed-out")
	}
	fmt.Fprintf(&b, " at=%d", r.Time)
	if r.Who != "" {
		fmt.Fprintf(&b, " who=%s", r.Who)
	}
	list(&b, "", r.Participants)
	list(&b, "done", r.Done)
	list(&b, "opens", c.Opens)
	if c.CloseAll {
		b.WriteString(" closes")
	}
	if c.Settlement != nil {
		fmt.Fprintf(&b, " settles [%s]", strings.Join(c.Settlement.Puts, " "))
	}
	return b.String()
}

func list(b *strings.Builder, title string, all []txn.Participant) {
	if len(all) == 0 {
		return
	}
	names := make([]string, len(all))
	for i, p := range all {
		names[i] = short(p)
	}
	if title != "" {
		fmt.Fprintf(b, " %s", title)
	}
	fmt.Fprintf(b, " [%s]", strings.Join(names, " "))
}

// settle gives cmd a settlement that names the participants, if the machine would take one.
func settle(m *fsm.Machine, cmd *fsm.EndTxn) *fsm.EndTxn {
	if participants := m.Settles(cmd); len(participants) > 0 {
		cmd.Settlement = &txn.Settlement{}
		for _, p := range participants {
			cmd.Settlement.Puts = append(cmd.Settlement.Puts, short(p))
		}
	}
	return cmd
}

const namespace = "persistent://tenant/namespace/"

// short is the name of a participant in scripts: topic, or topic/subscription.
func short(p txn.Participant) string {
	name := brief(strings.TrimPrefix(p.Topic, namespace))
	if p.Kind == txn.AckedSubscription {
		return name + "/" + p.Subscription
	}
	return name
}

// brief cuts a long name.
func brief(name string) string {
	if len(name) <= 40 {
		return name
	}
	return fmt.Sprintf("%.1s*%d", name, len(name))
}

// participant is the contrary of short.
func participant(name string) txn.Participant {
	topic, subscription, acked := strings.Cut(name, "/")
	if acked {
		return txn.Participant{Topic: namespace + topic, Subscription: subscription, Kind: txn.AckedSubscription}
	}
	return txn.Participant{Topic: namespace + topic}
}

func effect(e *fsm.Effect) string {
	switch e.Kind {
	case fsm.Reply:
		return reply(e)
	case fsm.Drive:
		d := &e.Decision
		return fmt.Sprintf("drive %s %s %s lowWaterMark=%d", d.ID(), d.Action(), short(d.Participant()), int64(d.LowWaterMark()))
	case fsm.Ended:
		text := fmt.Sprintf("event ended %s %s after %d ms", e.ID, e.Action, e.Millis)
		if e.TimedOut {
			text += " timed-out"
		}
		return text
	case fsm.Expired:
		return fmt.Sprintf("event expired %s", e.ID)
	case fsm.Contrary:
		return fmt.Sprintf("event contrary %s %s", e.ID, e.Action)
	case fsm.Resolved:
		return fmt.Sprintf("event resolved %s %s by %s", e.ID, short(e.Participant), e.Who)
	}
	return fmt.Sprintf("effect %d", e.Kind)
}

func reply(e *fsm.Effect) string {
	if e.Err != nil {
		return fmt.Sprintf("reply %v %s %s %v", e.To, e.ID, code(e.Err), e.Err)
	}
	text := fmt.Sprintf("reply %v %s ok", e.To, e.ID)
	if e.Descriptions == nil {
		return text
	}
	for i := range e.Descriptions {
		text += "\n       " + describe(&e.Descriptions[i])
	}
	return text
}

func describe(d *fsm.Description) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", d.ID, d.Status)
	if d.Owner.Known {
		fmt.Fprintf(&b, " owner=%s", d.Owner.Role)
	}
	if d.ClientName != "" {
		fmt.Fprintf(&b, " name=%s", d.ClientName)
	}
	fmt.Fprintf(&b, " opened=%d ttl=%d", d.Opened, d.TTLMillis)
	if d.Ended != 0 {
		fmt.Fprintf(&b, " ended=%d", d.Ended)
	}
	if d.TimedOut {
		b.WriteString(" timed-out")
	}
	if d.Held {
		b.WriteString(" held")
	}
	for _, p := range d.Participants {
		fmt.Fprintf(&b, " [%s", short(p.Participant))
		if p.Done {
			b.WriteString(" done")
		}
		if p.Resolved {
			b.WriteString(" resolved")
		}
		if p.Attempts > 0 {
			fmt.Fprintf(&b, " attempts=%d %q", p.Attempts, p.Failure)
		}
		b.WriteString("]")
	}
	return b.String()
}

// code is the ServerError that an error ends in.
func code(err error) string {
	var notFound *txn.NotFoundError
	var status *txn.StatusError
	switch {
	case errors.As(err, &notFound):
		return "24"
	case errors.As(err, &status):
		return "21"
	case errors.Is(err, txn.ErrNotAllowed):
		return "22"
	case errors.Is(err, txn.ErrNotReady):
		return "6"
	case errors.Is(err, txn.ErrTooManyRequests):
		return "14"
	case errors.Is(err, txn.ErrPreserverClosed):
		return "26"
	}
	return "?"
}
