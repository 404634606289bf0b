package synth

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/model/quant"
)

func newModel(t testing.TB, name string) *Model { return newModelOf(t, name, 16) }

func newModelOf(t testing.TB, name string, experts int) *Model {
	t.Helper()
	shape, err := Named(name)
	if err != nil {
		t.Fatal(err)
	}
	m, err := New(Options{Shape: shape, Layers: 2, Vocab: 600, Experts: experts, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Any range of a file has the same bytes as in the whole file, wherever it cuts rows, matrices,
// records and gaps.
func TestRenderRanges(t *testing.T) {
	m := newModel(t, "qwen3-30b-a3b")
	o := m.Options()
	o.RowOrder = true
	rows, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	dense, _ := m.weightsImage()
	denseRows, _ := rows.weightsImage()
	for _, f := range []*image{dense, m.expertImage(1), denseRows, rows.expertImage(1)} {
		const span = 12 << 20
		size := min(f.size(), span)
		whole := make([]byte, size)
		f.render(whole, f.size()-size)
		r := newKey(1, "ranges").stream()
		for range 300 {
			at := r.intn(int(size))
			n := 1 + r.intn(min(int(size)-at, 40000))
			part := bytes.Repeat([]byte{0xEE}, n)
			f.render(part, f.size()-size+int64(at))
			if !bytes.Equal(part, whole[at:at+n]) {
				t.Fatalf("%s: %d bytes at %d differ from those of the whole", f.name, n, at)
			}
		}
	}
}

// Scales and biases are exact: uniformly drawn codes have mean zero, and weights have the requested
// deviation.
func TestSteps(t *testing.T) {
	for _, deviation := range []float64{1, 0.875, 0.03, 0.0007, 1e-6} {
		sum := 0.0
		for _, p := range steps(deviation) {
			scale, bias := float64(quant.BF16ToF32(p.scale)), float64(quant.BF16ToF32(p.bias))
			if bias != -7.5*scale || scale <= 0 {
				t.Errorf("deviation %g: scale %g with bias %g, want -7.5 scales", deviation, scale, bias)
			}
			for code := range 16 {
				w := float64(code)*scale + bias
				sum += w * w / 16 / 8
			}
		}
		// between two of eight steps an octave
		if got := math.Sqrt(sum); math.Abs(got/deviation-1) > 0.07 {
			t.Errorf("weights deviate by %g, want %g", got, deviation)
		}
	}
}

// The words of a sequence look random: each nibble comes equally often, and neighbouring sequences
// share nothing.
func TestFill(t *testing.T) {
	k := newKey(1, "a")
	buf := make([]byte, 1<<20)
	k.fill(buf)
	var count [16]int
	for _, b := range buf {
		count[b&15]++
		count[b>>4]++
	}
	// 2^21 nibbles: 131072 of each, with a deviation of 350.
	for v, n := range count {
		if math.Abs(float64(n)-131072) > 6*350 {
			t.Errorf("nibble %d comes %d times, want about 131072", v, n)
		}
	}
	seen := map[uint64]bool{}
	for seed := range uint64(4) {
		for _, name := range []string{"a", "b"} {
			for i := range 100 {
				s := newKey(seed, name).sub(i).stream()
				for range 4 {
					seen[s.next()] = true
				}
			}
		}
	}
	if len(seen) != 4*2*100*4 {
		t.Errorf("%d different words of %d", len(seen), 4*2*100*4)
	}
}

// No two experts of a layer have the same score, whatever the token.
func TestScoresDiffer(t *testing.T) {
	shape, err := Named("qwen3.5-397b-a17b")
	if err != nil {
		t.Fatal(err)
	}
	m, err := New(Options{Shape: shape, Layers: 2})
	if err != nil {
		t.Fatal(err)
	}
	for token := range int32(50) {
		for i := range m.routers {
			s := m.routers[i].scores(m.tokenCode(token), m.topicCode(m.topic(token)))
			slices.Sort(s)
			if n := len(slices.Compact(s)); n != 512 {
				t.Errorf("token %d layer %d: %d different scores, want 512", token, i, n)
			}
		}
	}
}

func TestShare(t *testing.T) {
	for _, total := range []int{0, 1, 7, 8, 9, 511, 1016, -1, -9, -248, 248} {
		sum, parts := 0, share(total, 8)
		for _, p := range parts {
			sum += p
		}
		if sum != total || slices.Max(parts)-slices.Min(parts) > 1 {
			t.Errorf("share(%d, 8) = %v", total, parts)
		}
	}
}

func TestLargest(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		x    []float64
		k    int
		want []int32
		gap  float64
	}{
		{[]float64{1, 5, 3, 4}, 2, []int32{1, 3}, 1},
		{[]float64{2, 2, 2}, 2, []int32{0, 1}, 0},
		{[]float64{1, 2}, 2, []int32{1, 0}, inf},
		{[]float64{-inf, 1, -inf, 0}, 2, []int32{1, 3}, inf},
		{[]float64{4, 3, 2, 1, 9}, 1, []int32{4}, 5},
	} {
		if got, gap := largest(c.x, c.k); !slices.Equal(got, c.want) || gap != c.gap {
			t.Errorf("largest(%v, %d) = %v, %g, want %v, %g", c.x, c.k, got, gap, c.want, c.gap)
		}
	}
}

// A cache of two, by hand; and overlaps.
func TestSimulationFigures(t *testing.T) {
	uses := [][]int32{{1, 2}, {1, 3}, {2, 3}, {3, 2}}
	// 1 m, 2 m | 1 h, 3 m drops 2 | 2 m drops 1, 3 h | 3 h, 2 h
	if hits, late := lru(uses, 2); hits != 4.0/8 || late != 3.0/4 {
		t.Errorf("lru of 2 = %g, %g, want 0.5, 0.75", hits, late)
	}
	if hits, _ := lru(uses, 3); hits != 5.0/8 {
		t.Errorf("lru of 3 = %g, want 0.625", hits)
	}
	if hits, _ := lru(uses, 0); hits != 0 {
		t.Errorf("lru of 0 = %g, want 0", hits)
	}
	if got := overlap(uses, 1); got != 4.0/6 {
		t.Errorf("overlap = %g, want %g", got, 4.0/6)
	}
	var s Simulation
	s.count(uses, 4)
	if s.Distinct != 0.75 || s.Busiest != 3.0/8 {
		t.Errorf("distinct %g, busiest quarter %g, want 0.75, 0.375", s.Distinct, s.Busiest)
	}
}

func TestSimulateTrace(t *testing.T) {
	m := newModel(t, "qwen3-30b-a3b")
	var trace bytes.Buffer
	s, err := m.Simulate(t.Context(), 5, &trace)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(trace.String(), "\n"), "\n")
	if len(lines) != 5 || s.Tokens != 5 {
		t.Fatalf("%d lines of %d tokens, want 5", len(lines), s.Tokens)
	}
	if fields := strings.Fields(lines[4]); len(fields) != 4 || fields[0] != "4" || strings.Count(fields[2], ",") != 7 {
		t.Errorf("line %q, want number, token and 8 experts of 2 layers", lines[4])
	}
	if _, err := m.Simulate(t.Context(), 1, nil); err == nil {
		t.Error("one token is simulated, want an error")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.Simulate(ctx, 5, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	full := errors.New("full")
	if _, err := m.Simulate(t.Context(), 500, failing{full}); !errors.Is(err, full) {
		t.Errorf("a trace that cannot be written: %v, want %v", err, full)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestCompare(t *testing.T) {
	m := newModel(t, "qwen3-30b-a3b")
	token := m.Chain(1)[0]
	next, _ := m.Next(token)
	right := func() [][]int32 {
		var out [][]int32
		for _, l := range m.Routing(token) {
			p := slices.Clone(l.Experts)
			slices.Reverse(p) // any order
			out = append(out, p)
		}
		return out
	}
	for _, c := range []struct {
		name  string
		next  int32
		picks [][]int32
		want  []int // layers; -1 for the next token
	}{
		{"all right", next, right(), nil},
		{"picks not looked at", next, nil, nil},
		{"another token", next + 1, right(), []int{-1}},
		{"another expert", next, func() [][]int32 { p := right(); p[1][0] = other(p[1], 16); return p }(), []int{1}},
		{"a layer missing", next, right()[:1], []int{1}},
		{"no picks", next, [][]int32{}, []int{0, 1}},
		{"an expert twice", next, func() [][]int32 { p := right(); p[0][0] = p[0][1]; return p }(), []int{0}},
		{"fewer experts", next, func() [][]int32 {
			var out [][]int32
			for _, l := range m.Routing(token) {
				out = append(out, l.Experts[:3])
			}
			return out
		}(), nil},
		{"fewer experts, not the best", next, func() [][]int32 { p := right(); return [][]int32{p[0][:3], p[1][:3]} }(), []int{0, 1}},
	} {
		diffs, unsure := m.Compare(token, c.next, c.picks)
		var got []int
		for _, d := range diffs {
			got = append(got, d.Layer)
			if d.Error() == "" {
				t.Errorf("%s: a difference without words", c.name)
			}
		}
		if !slices.Equal(got, c.want) || unsure != 0 {
			t.Errorf("%s: differences in %v, %d too close, want %v, 0", c.name, got, unsure, c.want)
		}
	}
}

// other returns an expert that is not among the picks.
func other(picks []int32, experts int32) int32 {
	for e := range experts {
		if !slices.Contains(picks, e) {
			return e
		}
	}
	panic("all are")
}

// A choice that depends on almost nothing counts as close, whichever way it goes, unless the number
// of picks is wrong.
func TestCompareClose(t *testing.T) {
	m := newModelOf(t, "deepseek-v3", 64)
	token, r := m.Chain(1)[0], &m.routers[0]
	next, _ := m.Next(token)
	if m.Routing(token)[0].Close {
		t.Fatal("the choice is close from the start, want one that is made so")
	}
	// The best expert left out becomes the twin of the last pick.
	m.cfg.NumExpertsPerTok++
	picks := m.Routing(token)[0].Experts
	m.cfg.NumExpertsPerTok--
	last, twin := int(picks[len(picks)-2]), int(picks[len(picks)-1])
	n := len(r.base)
	for i := range tokenBits {
		r.token[i*n+twin] = r.token[i*n+last]
	}
	for i := range topicBits {
		r.topic[i*n+twin] = r.topic[i*n+last]
	}
	r.base[twin], r.tie[twin], r.bias[twin] = r.base[last], r.tie[last], r.bias[last]
	got := m.Routing(token)[0]
	if !got.Close {
		t.Fatalf("%+v with two experts alike, %d and %d, want a close choice", got, last, twin)
	}
	for _, e := range []int{last, twin} {
		picks[len(picks)-2] = int32(e)
		if diffs, _ := m.Compare(token, next, [][]int32{picks[:len(picks)-1]}); len(diffs) != 0 {
			t.Errorf("with expert %d in the last place: %v, want no difference", e, diffs)
		}
	}
	if diffs, _ := m.Compare(token, next, [][]int32{picks}); len(diffs) != 1 {
		t.Errorf("with a pick too many: %v, want one difference", diffs)
	}
}

// If a file system accepts the flag of direct writes but refuses the write, an ordinary write
// follows.
func TestDirectFallsBack(t *testing.T) {
	m := newModel(t, "qwen3-30b-a3b")
	f := m.expertImage(0)
	f.blocks = 1
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "packed_experts"), 0o755); err != nil {
		t.Fatal(err)
	}
	out, err := openTarget(dir, f)
	if err != nil {
		t.Fatal(err)
	}
	// Every device refuses memory at an odd address.
	buf := aligned(chunkBytes + directAlign)[1:]
	n := f.size()
	f.render(buf[:n], 0)
	if err := out.write(buf, n, 0); err != nil {
		t.Fatal(err)
	}
	if err := out.finish(); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(out.path)
	if err != nil || !bytes.Equal(got, buf[:n]) {
		t.Errorf("%d bytes are read back, %v; want the %d written", len(got), err, n)
	}
}

func BenchmarkRender(b *testing.B) {
	for _, layout := range []quant.Layout{quant.Rows, quant.Panels} {
		b.Run("layout="+layout.String(), func(b *testing.B) {
			o := newModel(b, "qwen3-30b-a3b").Options()
			o.RowOrder = layout == quant.Rows
			m, err := New(o)
			if err != nil {
				b.Fatal(err)
			}
			f := m.expertImage(1)
			buf := make([]byte, chunkBytes)
			b.SetBytes(chunkBytes)
			b.ReportAllocs()
			var at int64
			for b.Loop() {
				f.render(buf, at)
				at = (at + chunkBytes) % (f.size() - chunkBytes)
			}
		})
	}
}
