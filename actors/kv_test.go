package actors_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/gpu/host"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/internal/testenv"
	"github.com/moeflux/moeflux-actor/stages"
)

// kvFormats are the ways to keep keys and values.
var kvFormats = []actors.KVFormat{actors.KVF32, actors.KVInt8}

// pages returns how many pages are in use, and wants no more than the pool has.
func pages(t *testing.T, e *actors.Engine) (used, most int) {
	t.Helper()
	st, err := e.Stats(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if st.PagesUsed > st.PagesMax {
		t.Fatalf("%d pages are in use, the pool has %d", st.PagesUsed, st.PagesMax)
	}
	return st.PagesUsed, st.PagesMax
}

// TestKVPool shares a pool of seven pages between sequences of which each may have four. What does
// not fit is refused at once with what is needed and what is there, harms nobody, and fits when
// others have left. Pages that come back give the bits of new ones.
func TestKVPool(t *testing.T) {
	const page, most = 64, 7
	for k, name := range []string{fixtures.Qwen35MoEQ4, fixtures.DeepseekV3BF16} {
		for i, kv := range kvFormats {
			if testing.Short() && i != k {
				continue
			}
			t.Run(fmt.Sprintf("%s/kv=%s", name, kv), func(t *testing.T) {
				dir, dev := fixtures.Packed(t, name, 0), device(t, 2)
				ample := open(t, actors.Config{Model: dir, Device: dev, KV: kv})
				per, vocab := ample.Info().KVBytesPerPos, ample.Model().VocabSize
				if ample.Info().KV != kv {
					t.Fatalf("keys and values in %s, want %s", ample.Info().KV, kv)
				}
				e := open(t, actors.Config{Model: dir, Device: dev, KV: kv, StateMemory: per*page*most + per + 3*ample.Info().StateBytes, Context: 4 * page})
				text := func(seed uint64, n int) []int32 { return prompt(seed, n, vocab) }
				alone := func(tokens ...[]int32) (logits []float32) {
					s := sequence(t, ample)
					for _, t0 := range tokens {
						logits = eval(t, s, t0...)
					}
					return logits
				}
				// of states, fresh ones are needed, and states are there
				refused := func(s *actors.Sequence, tokens []int32, pages, fresh, used, states int) {
					t.Helper()
					_, err := s.Eval(context.Background(), tokens)
					want := stages.StateMemoryError{
						Pages: pages, States: fresh, Need: int64(pages)*page*per + int64(fresh)*e.Info().StateBytes, Used: int64(used)*page*per + int64(states)*e.Info().StateBytes, Max: e.Info().StateMemory,
					}
					var full *stages.StateMemoryError
					if !errors.As(err, &full) || *full != want {
						t.Fatalf("got %v, want %v", err, &want)
					}
				}
				a, b, c := sequence(t, e), sequence(t, e), sequence(t, e)
				eval(t, a, text(1, 3*page)...)
				eval(t, b, text(2, 2*page+1)...)
				refused(c, text(3, page+1), 2, 1, 6, 2)
				eval(t, c, text(3, page)...)
				refused(a, text(4, 1), 1, 0, 7, 3)

				// Who has room in his last page goes on, with the bits of an engine without limits;
				// so does who was refused, once there is room.
				if got := eval(t, b, text(5, page-1)...); !slices.Equal(got, alone(text(2, 2*page+1), text(5, page-1))) {
					t.Error("a sequence in a full pool differs from one in an ample one")
				}
				if err := b.Reset(context.Background()); err != nil {
					t.Fatal(err)
				}
				if got := eval(t, a, text(4, 1)...); !slices.Equal(got, alone(text(1, 3*page), text(4, 1))) {
					t.Error("a sequence that was refused once differs from one that was not")
				}
				if err := c.Close(); err != nil {
					t.Fatal(err)
				}
				if got := eval(t, b, text(6, 3*page)...); !slices.Equal(got, alone(text(6, 3*page))) {
					t.Error("a sequence in pages of others differs from one in new pages")
				}
				if used, _ := pages(t, e); used != most {
					t.Errorf("%d pages are in use, want %d", used, most)
				}
				refused(sequence(t, e), text(7, 1), 1, 1, 7, 2)
				for _, s := range []*actors.Sequence{a, b} {
					if err := s.Close(); err != nil {
						t.Fatal(err)
					}
				}
				if used, _ := pages(t, e); used != 0 {
					t.Errorf("%d pages are in use without a sequence", used)
				}
			})
		}
	}
}

// TestKVInt8EqualBits holds conversations with 8-bit keys and values under settings that change
// speed only, and wants the same bits.
func TestKVInt8EqualBits(t *testing.T) {
	for _, name := range []string{fixtures.Qwen35MoEQ4, fixtures.Qwen3NextQ4, fixtures.Qwen3MoEBF16, fixtures.DeepseekV3Q4, fixtures.DeepseekV3Q4KVB} {
		t.Run(name, func(t *testing.T) {
			dir := fixtures.Packed(t, name, 0)
			dev, dev1 := device(t, 3), device(t, 1)
			rows := []int{80, 7}
			if name == fixtures.DeepseekV3Q4 || name == fixtures.DeepseekV3Q4KVB {
				// latent attention has two forms, chosen by the chunk and the rows of a step
				rows = []int{80}
			}
			base := open(t, actors.Config{Model: dir, Device: dev1, RingDepth: 1, ExpertIO: actors.ExpertIOMmap, ChunkRows: rows[0], KV: actors.KVInt8})
			first, second := prompt(1, 75, base.Model().VocabSize), prompt(2, 11, base.Model().VocabSize)
			want, err := transcript(sequence(t, base), first, 6)
			if err != nil {
				t.Fatal(err)
			}
			for _, rows := range rows {
				for _, way := range []string{"alone", "beside another"} {
					cfg := actors.Config{Model: dir, Device: dev, ExpertIO: actors.ExpertIOBuffered, ChunkRows: rows, KV: actors.KVInt8}
					if err := sameConversation(cfg, first, second, want, way); err != nil {
						t.Errorf("chunks of %d, %s: %v", rows, way, err)
					}
				}
			}
		})
	}
}

// TestKVInt8SaveLoad saves sequences with 8-bit keys and values, loads them into another engine,
// whose memory the host can address or not, and goes on: the logits are those of never having
// stopped, and what is saved again is the same file. A file tells nothing of how an engine keeps
// its state: it goes into one with float32 and comes out of it as it was.
func TestKVInt8SaveLoad(t *testing.T) {
	for _, name := range families {
		for _, far := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/far=%v", name, far), func(t *testing.T) {
				var dev gpu.Device = device(t, 2)
				if far {
					dev = &farDevice{dev}
				}
				cfg := actors.Config{Model: fixtures.Packed(t, name, 0), Device: dev, ChunkRows: rowsOfSteps(name, 32), KV: actors.KVInt8}
				from, to := open(t, cfg), open(t, cfg)
				cfg.KV = actors.KVF32
				exact := open(t, cfg)
				text := prompt(3, 135, from.Model().VocabSize)
				src, dst, other := sequence(t, from), sequence(t, to), sequence(t, exact)
				eval(t, dst, 1, 2, 3)
				for _, pos := range []int{1, 59, 63, 68, 130} {
					eval(t, src, text[src.Len():pos]...)
					raw := save(t, src, actors.SaveOptions{})
					for _, s := range []*actors.Sequence{dst, other} {
						if err := load(s, raw, actors.LoadOptions{}); err != nil {
							t.Fatal(err)
						}
						if again := save(t, s, actors.SaveOptions{}); !bytes.Equal(again, raw) {
							t.Fatalf("at %d: what was loaded is saved as another file", pos)
						}
					}
					eval(t, other, text[pos:pos+3]...)
					for k := pos; k < pos+3; k++ {
						want := eval(t, src, text[k])
						if got := eval(t, dst, text[k]); !slices.Equal(got, want) {
							t.Fatalf("saved at %d: logits at %d differ", pos, k)
						}
					}
					// What float32 kept is rounded now.
					if err := load(dst, save(t, other, actors.SaveOptions{}), actors.LoadOptions{}); err != nil {
						t.Fatal(err)
					}
					eval(t, dst, text[pos+3])
				}
			})
		}
	}
}

// kvInt8Loss bounds how far 8-bit keys and values may take a fixture's logits, against the norm of
// the exact ones. A channel is off by a 250th of its head's largest at most; scores and values of
// the tiny models feel a fraction of that. Hybrids have fewer such layers, but their recurrence
// amplifies.
const kvInt8Loss = 0.02

// TestKVInt8Fixtures reads the fixtures' longest prompt with 8-bit keys and values and wants logits
// near the reference's, and not the same. A row of a model that chooses positions may choose
// another one where two scores are close, and is another row then: few do, and they are left out.
func TestKVInt8Fixtures(t *testing.T) {
	dev := device(t, 2)
	for _, name := range fixtures.All() {
		t.Run(name, func(t *testing.T) {
			ref, p := fixtures.Reference(t, name), fixtures.Longest(name)
			e := open(t, actors.Config{Model: fixtures.Packed(t, name, 0), Device: dev, KV: actors.KVInt8})
			s := sequence(t, e)
			got, err := s.EvalChunk(ctx, actors.Chunk{Tokens: ints(ref, p+".ids"), Logits: actors.AllLogits, Dump: choices(e)})
			if err != nil {
				t.Fatal(err)
			}
			vocab := e.Model().VocabSize
			rows, others := len(got.Logits)/vocab, 0
			var wrong, norm, worst float64
			want := floats(ref, p+".logits")
			for r := range rows {
				if !chosenAs(e.Model(), got.Dump, ref, p+".index_topk", r) {
					others++
					continue
				}
				for i := r * vocab; i < (r+1)*vocab; i++ {
					w := float64(want[i])
					d := math.Abs(float64(got.Logits[i]) - w)
					wrong, norm, worst = wrong+d*d, norm+w*w, max(worst, d)
				}
			}
			loss := math.Sqrt(wrong / norm)
			if !(loss < kvInt8Loss) || worst < 1e-6 {
				t.Errorf("logits are off by %.2g of their norm, %.2g at most; want some, and less than %v", loss, worst, kvInt8Loss)
			}
			if others > rows/8 {
				t.Errorf("%d of %d rows choose other positions; want an eighth at most", others, rows)
			}
			id, same := argmax(got.Logits[len(got.Logits)-vocab:]), 0
			for _, want := range ints(ref, p+".decode_ids") {
				if id != want {
					break
				}
				same++
				id = argmax(eval(t, s, id))
			}
			t.Logf("logits off by %.2g of their norm, %.2g at most, %d rows left out; the first %d of %d greedy tokens are the reference's",
				loss, worst, others, same, len(ints(ref, p+".decode_ids")))
		})
	}
}

// TestDemoKVInt8 evaluates the demo model's windows with 8-bit keys and values, with exact
// activations and with those of 8 bits: the mean loss stays within 0.1 % of the same engine's with
// float32 keys and values, and the two standard errors that the change of single tokens' losses
// explains. Few windows, rounded, change by that much either way.
func TestDemoKVInt8(t *testing.T) {
	for _, activations := range []host.Activations{host.F32, host.Int8} {
		t.Run(activations.String(), func(t *testing.T) {
			dev, err := host.New(host.Config{Threads: 2, Activations: activations})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { dev.Close() })
			losses := map[actors.KVFormat][]float64{}
			for _, kv := range kvFormats {
				e, ref := openDemo(t, dev, actors.Config{KV: kv})
				windows := testenv.Rounds(1, 2, 4)
				s := sequence(t, e)
				for w := range windows {
					ids := ref.EvalIDs[w*ref.Seq : (w+1)*ref.Seq+1]
					if err := s.Reset(context.Background()); err != nil {
						t.Fatal(err)
					}
					r, err := s.EvalChunk(context.Background(), actors.Chunk{Tokens: ids[:ref.Seq], Logits: actors.AllLogits})
					if err != nil {
						t.Fatal(err)
					}
					losses[kv] = append(losses[kv], tokenLosses(r.Logits, ids[1:])...)
				}
				same, texts := 0, ref.Greedy[:testenv.Rounds(0, 1, len(ref.Greedy))]
				for _, g := range texts {
					ids, err := greedy(sequence(t, e), g.PromptIDs, len(g.NewIDs))
					if err != nil {
						t.Fatal(err)
					}
					if slices.Equal(ids, g.NewIDs) {
						same++
					}
				}
				t.Logf("kv %s: mean loss %.6f of %d windows, %d of %d greedy texts are the reference's", kv, mean(losses[kv]), windows, same, len(texts))
			}
			loss := mean(losses[actors.KVF32])
			change, spread := pairedChange(losses[actors.KVF32], losses[actors.KVInt8])
			if math.Abs(change) > 0.001*loss+2*spread || change == 0 {
				t.Errorf("8 bits change the loss by %+.4f %%, with a standard error of %.4f %%; want some and at most 0.1 %% beyond two of these", 100*change/loss, 100*spread/loss)
			}
			t.Logf("8 bits change the loss by %+.4f %%, with a standard error of %.4f %%", 100*change/loss, 100*spread/loss)
		})
	}
}

// pairedChange returns by how much values change on average from before to after, and the standard
// error of that.
func pairedChange(before, after []float64) (change, spread float64) {
	changes, squares := make([]float64, len(before)), 0.0
	for i := range changes {
		changes[i] = after[i] - before[i]
	}
	change = mean(changes)
	for _, c := range changes {
		squares += (c - change) * (c - change)
	}
	return change, math.Sqrt(squares) / float64(len(changes))
}
