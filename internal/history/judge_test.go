package history

import (
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"pgregory.net/rapid"

	"github.com/pulsar-tc/pulsar-tc/txn"
)

// drawSteps draws an opening and anything behind it, right or wrong, with few different times, so that they often meet.
func drawSteps(t *rapid.T) []step {
	moment := rapid.Custom(func(t *rapid.T) time.Duration { return time.Duration(rapid.IntRange(0, 12).Draw(t, "time")) })
	span := func() Span {
		call := moment.Draw(t, "call")
		return Span{"", call, call + time.Duration(rapid.IntRange(0, 5).Draw(t, "took"))}
	}
	steps := []step{
		{kind: opening, Span: Span{"", 1, 1 + moment.Draw(t, "opened")}},
		{kind: deadline, Span: Span{"", moment.Draw(t, "deadline"), Never}},
		{kind: forgetting, Span: Span{"", moment.Draw(t, "retention"), Never}},
	}
	for range rapid.IntRange(1, 6).Draw(t, "steps") {
		s := step{
			kind: rapid.SampledFrom([]stepKind{ending, ending, using, looking, telling, reading, passing}).Draw(t, "kind"), Span: span(),
			action: txn.Action(rapid.IntRange(0, 1).Draw(t, "action")), answer: Answer(rapid.IntRange(0, 4).Draw(t, "answer")),
			status: txn.Status(rapid.IntRange(0, 4).Draw(t, "status")), known: rapid.IntRange(0, 3).Draw(t, "known") > 0,
		}
		if s.kind == ending && s.answer == Unknown {
			s.Return = Never
		}
		if s.kind == telling || s.kind == reading || s.kind == passing {
			s.Return = s.Call
		}
		steps = append(steps, s)
	}
	return steps
}

// The direct way and porcupine's search decide alike, on right histories and wrong ones.
func TestJudgeAgreesWithPorcupine(t *testing.T) {
	right, wrong := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		steps := drawSteps(t)
		v, searched := judge(steps), linearizable(steps)
		if (v == nil) != (searched == porcupine.Ok) {
			t.Fatalf("judge says %v, porcupine %s:%s", v, searched, (&account{steps: steps}).story())
		}
		if v == nil {
			right++
		} else {
			wrong++
		}
	})
	t.Logf("%d right, %d wrong", right, wrong)
	if right == 0 || wrong == 0 {
		t.Error("only one kind of history was drawn")
	}
}
