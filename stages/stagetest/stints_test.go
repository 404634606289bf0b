package stagetest_test

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/testenv"
	"github.com/moeflux/moeflux-actor/stages"
)

// TestStints lets texts that do not say how long they will be decode on memory for four. They go on
// in stints, and a stint is long: few states are parked and brought back for what is decoded. A
// lower class has no turn as long as four of a higher one go on. All get the bits that they have
// alone.
func TestStints(t *testing.T) {
	p := openPack(t, "qwen3_5_moe/bf16")
	const decode = 60
	for _, c := range []struct {
		name        string
		classes     []stages.Class // of four texts each
		random      bool           // the order of events; without it callers come back at once
		least, most int64          // states that are brought back; without stints 515 and more, and 13 in the fifth order
	}{
		{"one class", []stages.Class{stages.Normal, stages.Normal, stages.Normal, stages.Normal}, true, 12, 16 * decode / 4},
		{"two classes", []stages.Class{stages.Background, stages.Interactive}, false, 4, 12},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(3, 14))
			var all []script
			for i := range 4 * len(c.classes) {
				sc := script{decode: decode, want: stages.LastLogits, class: c.classes[i/4]}
				for range 1 + r.IntN(5) {
					sc.prompt = append(sc.prompt, int32(r.IntN(p.cfg.VocabSize)))
				}
				all = append(all, sc)
			}
			want := p.alone(t, all)
			for sd := range uint64(testenv.Rounds(2, 5, 50)) {
				r := rand.New(rand.NewPCG(sd, 15))
				tu := randomTuning(r, p.cfg.NumExperts, len(p.cfg.Layers))
				tu.resident, tu.parks, tu.states, tu.sequences, tu.pages = true, true, 100, 4, 100*len(all)
				if !c.random {
					r = nil
				}
				x := p.simulate(t, tu, r, faults{})
				got, errs, err := x.play(all)
				if err != nil {
					t.Fatalf("order %d: %v", sd, err)
				}
				for i := range all {
					if errs[i] != nil || !reflect.DeepEqual(got[i], want[i]) {
						t.Fatalf("order %d: text %d: %v, or other logits", sd, i, errs[i])
					}
				}
				st, err := x.stats()
				if err != nil {
					t.Fatal(err)
				}
				if n := st.States.Returns; n < c.least || n > c.most {
					t.Errorf("order %d: %d tokens were decoded, and %d states brought back; want %d to %d", sd, len(all)*decode, n, c.least, c.most)
				}
				x.close()
			}
		})
	}
}
