package policy_test

import (
	"testing"

	"github.com/moeflux/moeflux-actor/io/synth"
	"github.com/moeflux/moeflux-actor/stages/expertio/policy"
)

// missing counts what each visit misses.
type missing struct {
	*order
	visits []int
}

func (m *missing) visit(v *visit) {
	m.order.visit(v)
	m.visits = append(m.visits, 0)
}

func (m *missing) insert(k int32) {
	m.order.insert(k)
	m.visits[len(m.visits)-1]++
}

// TestNewSubject looks at the first token of each new subject of a law, which takes longest: it
// needs experts that the text has not used for long, if ever. With slots for half of the experts,
// some stay for being popular, and the tokens after it lose nothing by that.
func TestNewSubject(t *testing.T) {
	const subject, subjects, known, chunk = 64, 16, 6, 512
	all := synthTrace(t, "qwen3-30b-a3b", synth.Mild, subject*subjects+6*chunk)
	text, prompt := all.part(0, subject*subjects), all.part(subject*subjects, all.tokens())
	// misses returns those of the first token of a subject, and of one of the others, in a hundred
	// uses, after a prompt or after none.
	misses := func(prompt *trace, popular float64) (first, later float64) {
		o, err := policy.New(policy.Config{Layers: all.layers, Experts: all.experts, Popular: popular})
		if err != nil {
			t.Fatal(err)
		}
		tr, m := *text, &missing{order: &order{Order: o}}
		tr.visits = nil
		for at := 0; at < prompt.tokens(); at += chunk {
			tr.visits = append(tr.visits, prompt.part(at, at+chunk).together()...)
		}
		before := len(tr.visits)
		tr.visits = append(tr.visits, text.visits...)
		simulate(&tr, tr.keys()/2, nil, m)
		for i, n := range m.visits[before+known*subject*tr.layers:] {
			if i/tr.layers%subject == 0 {
				first += float64(n)
			} else {
				later += float64(n)
			}
		}
		uses := float64(tr.layers * tr.topK * (subjects - known))
		return 100 * first / uses, 100 * later / (subject - 1) / uses
	}
	const short = 6 // by which popularity is what a text has used of late, once more
	for _, c := range []struct {
		name   string
		prompt *trace
		saves  float64 // of the first tokens' misses
	}{{"a text alone", prompt.part(0, 0), 0.08}, {"a text after a prompt of six chunks", prompt, 0.15}} {
		first, later := misses(c.prompt, 0)
		without, laterWithout := misses(c.prompt, short)
		t.Logf("%s: the first token of a subject misses %.1f %% of its uses, others %.2f; if popularity is of no account %.1f and %.2f", c.name, first, later, without, laterWithout)
		if first > (1-c.saves)*without || later > laterWithout+0.05 {
			t.Errorf("%s: popularity saves %.0f %% of the misses of the first token of a subject, want %.0f, and of others %.0f %%", c.name, 100*(1-first/without), 100*c.saves, 100*(1-later/laterWithout))
		}
	}
}
