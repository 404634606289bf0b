package stagetest_test

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/gpu/host"
	"github.com/moeflux/moeflux-actor/gpu/split"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/internal/testenv"
	"github.com/moeflux/moeflux-actor/io/expertfile"
	"github.com/moeflux/moeflux-actor/io/weights"
	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/model/route"
	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/combine"
	"github.com/moeflux/moeflux-actor/stages/dispatch"
	"github.com/moeflux/moeflux-actor/stages/expertio"
	"github.com/moeflux/moeflux-actor/stages/router"
	"github.com/moeflux/moeflux-actor/stages/sequencer"
	"github.com/moeflux/moeflux-actor/stages/stagetest"
)

var (
	orders = flag.Int("orders", 250, "how many delivery orders to try")
	seed   = flag.Uint64("seed", 0, "try this order alone")
)

// pack is an open model that many simulations share.
type pack struct {
	cfg     *model.Config
	weights *weights.File
	experts *expertfile.File
	dev     *host.Device
}

func openPack(t *testing.T, name string) *pack {
	t.Helper()
	dir := fixtures.Packed(t, name, 0)
	raw, err := os.ReadFile(filepath.Join(dir, "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	p := new(pack)
	if p.cfg, err = model.ParseConfig(raw, nil); err != nil {
		t.Fatal(err)
	}
	if p.weights, err = weights.Open(dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.weights.Close() })
	if p.experts, err = expertfile.Open(dir, p.cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.experts.Close() })
	if p.dev, err = host.New(host.Config{Threads: 1}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.dev.Close() })
	return p
}

// tuning is everything that must not change a bit.
type tuning struct {
	depth, slots, waveSlots, steps, chunkRows int
	lastToken, nextGate                       bool
	ahead, aheadRows                          int     // layers, rows
	share                                     float64 // of prompts; 0 means 0.65
	reads                                     int     // at once of steps that are not urgent; 0 means any number
	resize                                    bool    // to random numbers of slots at random moments
	warm                                      bool    // from random counts of earlier runs
	// all experts in memory, and the device chooses among them; slots, warm and resize are of no
	// use
	resident bool
	// recurrent states that the budget of checkpoints holds
	kept            int
	parks           bool // states are parked to make room
	pages           int  // key-value pages for which there is memory; 0 means 64
	states          int  // recurrent states for which there is memory besides; 0 means 16
	host            hostTuning
	hosts, askPicks int  // expert hosts, and the most picks of an ask
	steady          bool // hosts are there from the beginning, and stay
	border          int  // the first layer of a second device; 0: there is one
	// most that have memory at once, 0 means any number; most requests that wait for some, 0 means
	// 100
	sequences, waiting int
}

// gates is how many layers' routers dispatch asks ahead.
func (tu tuning) gates() int {
	if tu.nextGate {
		return tu.ahead
	}
	return 0
}

// parts returns the borders, and how the slots are divided, if they are.
func (tu *tuning) parts() (stages.Borders, []int) {
	switch {
	case tu.border == 0:
		return nil, nil
	case tu.resident:
		return stages.Borders{tu.border}, nil
	}
	first := max(tu.waveSlots, tu.slots/3)
	return stages.Borders{tu.border}, []int{first, tu.slots - first}
}

// device returns the device that the pipeline is to see: p's, as one part or as both of two.
func (p *pack) device(t *testing.T, tu *tuning) gpu.Device {
	t.Helper()
	if tu.border == 0 {
		return p.dev
	}
	d, err := split.New(p.dev, p.dev)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// stateBytes is the memory for states.
func (tu tuning) stateBytes(m *model.Config) int64 {
	return int64(cmp.Or(tu.pages, 64))*pageBytes(m) + int64(cmp.Or(tu.states, 16))*int64(dispatch.RecurrentBytes(m, gpu.KVF32, 4))
}

func pageBytes(m *model.Config) int64 { return int64(dispatch.PageBytes(m, gpu.KVF32, 4)) }

// slotBuffer is slot memory in one buffer.
type slotBuffer struct {
	buf    gpu.Buffer
	stride int
}

func (s *slotBuffer) View(id stages.SlotID) gpu.View {
	return gpu.View{Buf: s.buf, Offset: int(id) * s.stride}
}

// simulation is a pipeline with its memory.
type simulation struct {
	*stagetest.Sim
	dispatch *dispatch.Core
	slots    *slotBuffer
	parked   parkedStates
	cores    [stages.NumStages]stages.Core

	tu             tuning
	r              *rand.Rand
	asked, resized int // ResizeSlots and ForgetExperts, and their answers
}

// faults decides what fails. A nil function fails nothing.
type faults struct {
	read   func(stages.Read) error                       // in place of reading
	late   func(stages.Read) error                       // before a read ends
	run    func(*gpu.Commands) error                     // in place of running
	submit func(*gpu.Commands) error                     // in place of taking
	upload func() error                                  // of a record to a slot, in place of copying
	pin    func() error                                  // in place of pinning
	park   func(stages.Park) error                       // in place of parking
	answer func(stages.Ask, int32) ([]float32, error)    // for expert hosts
	sum    func(stages.Ask, []stages.AnsweredUse)        // likewise
	core   func(stages.StageID, stages.Core) stages.Core // what stands in a stage's place
}

// simulate builds a pipeline.
func (p *pack) simulate(t *testing.T, tu tuning, r *rand.Rand, f faults) *simulation {
	t.Helper()
	if tu.resident {
		tu.slots, tu.resize, tu.warm = len(p.cfg.Layers)*p.cfg.NumExperts, false, false
	}
	s := &simulation{tu: tu, r: r, parked: make(parkedStates)}
	lay := p.experts.Layout()
	buf, err := p.dev.NewBuffer(tu.slots * lay.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	s.slots = &slotBuffer{buf, lay.Bytes}
	for i := 0; tu.resident && i < tu.slots; i++ {
		if err := p.experts.ReadExpert(i/p.cfg.NumExperts, i%p.cfg.NumExperts, buf.Bytes()[i*lay.Bytes:][:lay.Bytes]); err != nil {
			t.Fatal(err)
		}
	}
	queue := stagetest.NewQueue(func(c *gpu.Commands) error {
		if f.run != nil {
			if err := f.run(c); err != nil {
				return err
			}
		}
		for _, m := range c.Moves {
			copy(m.Dst.Buf.Bytes()[m.Dst.Offset:][:m.Bytes], m.Src.Buf.Bytes()[m.Src.Offset:])
		}
		return p.dev.Run(c)
	})
	borders, parts := tu.parts()
	k, layers := p.cfg.NumExpertsPerTok, len(p.cfg.Layers)
	s.dispatch, err = dispatch.New(dispatch.Config{
		Model: p.cfg, Layout: p.experts.LayoutOf, RecordBytes: lay.Bytes, TopK: k, ChunkRows: tu.chunkRows, Lanes: tu.steps + 1, PageRows: 4, MaxPages: int(tu.stateBytes(p.cfg) / pageBytes(p.cfg)), Ahead: tu.gates(), AheadRows: tu.chunkRows,
		Rule: route.Rule{NormTopK: p.cfg.NormTopKProb}, Resident: tu.resident, Away: tu.hosts > 0, Borders: borders,
	}, p.device(t, &tu), queue, p.weights, s.slots)
	if err != nil {
		t.Fatal(err)
	}
	queue.Hold()
	queue.Refuse = f.submit
	var chances []float64
	if tu.warm {
		chances = make([]float64, layers*p.cfg.NumExperts)
		for i := range chances {
			chances[i] = max(0, r.Float64()*1.5-0.5)
		}
	}
	eio, err := expertio.New(expertio.Config{
		Borders: borders, Parts: parts,
		Layers: layers, Experts: p.cfg.NumExperts, ExpertBytes: lay.Bytes, Slots: tu.slots, WaveSlots: tu.waveSlots, RingDepth: tu.depth,
		Reads: tu.reads, Chances: chances, Mapped: tu.resident, Hosts: tu.hosts, AskPicks: tu.askPicks,
	})
	if err != nil {
		t.Fatal(err)
	}
	window, windowRows := dispatch.Windows(p.cfg, gpu.KVF32, 4, 0)
	s.cores = [stages.NumStages]stages.Core{
		stages.Sequencer: sequencer.New(sequencer.Config{
			Layers: layers, Vocab: p.cfg.VocabSize, ChunkRows: tu.chunkRows, RingDepth: tu.depth,
			StepsInFlight: tu.steps, PromptShare: cmp.Or(tu.share, 0.65), Preempts: r != nil && r.IntN(2) == 0, Resident: tu.resident, MaxPositions: 256, PageRows: 4, StateBytes: tu.stateBytes(p.cfg),
			RecurrentBytes: int64(dispatch.RecurrentBytes(p.cfg, gpu.KVF32, 4)), Window: window, WindowRows: windowRows, PageBytes: pageBytes(p.cfg), Checkpoints: 4,
			Parks: tu.parks, CheckpointBytes: int64(tu.kept) * int64(dispatch.RecurrentBytes(p.cfg, gpu.KVF32, 4)), MaxSequences: tu.sequences, MaxWaiting: cmp.Or(tu.waiting, 100), Borders: borders,
		}),
		stages.Router: router.New(router.Config{
			Layers: layers, Experts: p.cfg.NumExperts, TopK: k, Rule: router.Rule{Rule: route.Rule{NormTopK: p.cfg.NormTopKProb}},
			LastToken: tu.lastToken, NextGate: tu.nextGate, Ahead: tu.ahead, AheadRows: tu.aheadRows, PrefetchSlots: tu.slots - tu.waveSlots,
		}),
		stages.ExpertIO: eio,
		stages.Dispatch: s.dispatch,
		stages.Combine:  &combine.Core{Borders: borders},
	}
	for id := range s.cores {
		if f.core != nil {
			s.cores[id] = f.core(stages.StageID(id), s.cores[id])
		}
	}
	watched := 4
	// there a step that failed is taken back, and its pages are others'
	if dispatch.RecurrentBytes(p.cfg, gpu.KVF32, 4) == 0 {
		watched = 0
	}
	slot := func(id stages.SlotID) []byte { return buf.Bytes()[int(id)*lay.Bytes:][:lay.Bytes] }
	read := func(rd stages.Read, to []byte) error {
		if len(parts) > 0 && (int(rd.Slot) >= parts[0]) != (rd.Layer >= tu.border) {
			t.Errorf("layer %d is read into slot %d, which lies in the memory of another device", rd.Layer, rd.Slot)
		}
		if f.read != nil {
			if err := f.read(rd); err != nil {
				return err
			}
		}
		return p.experts.ReadExpert(rd.Layer, rd.Expert, to)
	}
	s.Sim = stagetest.New(stagetest.Config{
		Cores: s.cores, Queue: queue, RingDepth: tu.depth, Borders: borders, PageRows: watched, Rand: r, ExpertBytes: p.experts.Layout().Bytes, ExpertLayers: len(p.cfg.MoELayers()),
		Answer: f.answer, Sum: f.sum, Late: f.late, Reads: tu.reads, Layers: len(p.cfg.Layers),
		Park: func(k stages.Park) error {
			if f.park != nil {
				if err := f.park(k); err != nil {
					return err
				}
			}
			return s.parked.do(p.cfg, k)
		},
		Read: func(rd stages.Read) error { return read(rd, slot(rd.Slot)) },
		Tier: p.tier(&tu, f, slot, read),
		Free: func(id stages.SlotID) { clear(slot(id)) },
	})
	if tu.warm {
		s.PostTo(stages.ExpertIO, new(stages.WarmSlots))
	}
	for h := 0; tu.steady && h < tu.hosts; h++ {
		s.PostTo(stages.ExpertIO, &stages.HostChanged{Host: h, Experts: 20, Asks: 4})
	}
	return s
}

// meddle asks for another number of slots now and then, and has experts forgotten. The host's
// memory gets other limits.
func (s *simulation) meddle() {
	if s.tu.resize && s.tu.host.records > 0 && s.r.IntN(30) == 0 {
		s.LimitTier(s.r.IntN(2 * s.tu.host.records))
	}
	if s.tu.resize && s.r.IntN(40) == 0 {
		s.asked++
		s.PostTo(stages.ExpertIO, &stages.ResizeSlots{Slots: s.r.IntN(2 * s.tu.slots), Memory: s.r.IntN(2) == 0, Caller: "resize"})
	}
	if s.tu.hosts > 0 && !s.tu.steady && s.r.IntN(20) == 0 {
		m := &stages.HostChanged{Host: s.r.IntN(s.tu.hosts), Experts: max(0, s.r.IntN(40)-10), Asks: 1 + s.r.IntN(4)}
		if s.r.IntN(2) == 0 { // some networks are slow for the disk, some are not, of some nothing is known
			m.DelayNS, m.RowNS = s.r.Float64()*1e6, s.r.ExpFloat64()*1e5
		}
		s.PostTo(stages.ExpertIO, m)
	}
	if s.tu.resize && s.r.IntN(60) == 0 {
		s.asked++
		s.PostTo(stages.Router, &stages.ForgetExperts{Caller: "forget"})
	}
}

// atRest is AtRest, and wants an answer to all that was asked.
func (s *simulation) atRest() error {
	if s.asked != s.resized {
		return fmt.Errorf("%d numbers of slots and emptied pools were asked for, %d answered", s.asked, s.resized)
	}
	return s.AtRest()
}

func (s *simulation) close() {
	s.dispatch.Close()
	s.slots.buf.Release()
}

// script is what one caller does: read a prompt, then decode.
type script struct {
	prompt []int32
	decode int
	want   stages.LogitsWanted // last or best
	class  stages.Class        // of play
}

// next is the most likely token by what was wanted.
func (s *script) next(e *stages.ChunkEvaluated) int32 {
	if s.want == stages.BestLogits {
		return e.Largest.Tokens[0]
	}
	return argmax(e.Logits)
}

// told is what a chunk's answer says of its last row, as numbers that can be compared.
func told(e *stages.ChunkEvaluated) []float32 {
	all := slices.Concat(e.Logits, e.Largest.Logits)
	for _, t := range e.Largest.Tokens {
		all = append(all, float32(t))
	}
	return all
}

// play runs all scripts at once and returns the logits that each caller got, or its error.
func (s *simulation) play(scripts []script) ([][][]float32, []error, error) {
	logits, errs := make([][][]float32, len(scripts)), make([]error, len(scripts))
	for i := range scripts {
		s.Post(&stages.OpenSequence{Seq: stages.SeqID(i + 1), Class: scripts[i].class, Caller: i})
	}
	if err := s.Run(nil); err != nil {
		return nil, nil, err
	}
	s.Answers = nil
	for i, sc := range scripts {
		s.Post(&stages.EvalChunk{Seq: stages.SeqID(i + 1), Tokens: sc.prompt, Logits: sc.want, Caller: i})
	}
	seen := 0
	for {
		stop := func() bool {
			s.meddle()
			return len(s.Answers) > seen
		}
		if err := s.Run(stop); err != nil {
			return nil, nil, err
		}
		if len(s.Answers) == seen {
			return logits, errs, s.atRest()
		}
		for ; seen < len(s.Answers); seen++ {
			switch m := s.Answers[seen].Msg.(type) {
			case *stages.SlotsResized:
				s.resized++
				continue
			case *stages.ExpertsForgotten:
				s.resized++
				if m.Err != nil && !s.tu.resident {
					return nil, nil, m.Err
				}
				continue
			}
			e := s.Answers[seen].Msg.(*stages.ChunkEvaluated)
			i := s.Answers[seen].To.(int)
			if errs[i] = e.Err; e.Err != nil {
				continue
			}
			logits[i] = append(logits[i], told(e))
			if n := len(logits[i]); n <= scripts[i].decode {
				s.Post(&stages.EvalChunk{Seq: stages.SeqID(i + 1), Tokens: []int32{scripts[i].next(e)}, Logits: scripts[i].want, Caller: i})
			}
		}
	}
}

// stats asks for the figures; whatever else is under way goes on meanwhile.
func (s *simulation) stats() (*stages.Stats, error) {
	st := new(stages.Stats)
	s.Post(&stages.CollectStats{Stats: st, Caller: "stats"})
	answered := func() bool {
		return slices.ContainsFunc(s.Answers, func(a stages.Answer) bool { m, ok := a.Msg.(*stages.CollectStats); return ok && m.Stats == st })
	}
	if err := s.Run(answered); err != nil {
		return nil, err
	}
	return st, nil
}

// conserved reports a layer whose speculative reads do not end as one of hit, late and wasted each,
// or are not there yet.
func conserved(s *stages.Stats) error {
	for i, l := range s.Layers {
		if l.PrefetchIssued != l.PrefetchHit+l.PrefetchLate+l.PrefetchWasted+l.PrefetchHeld {
			return fmt.Errorf("layer %d: %d speculative reads became %d hits, %d late, %d wasted, and %d are held",
				i, l.PrefetchIssued, l.PrefetchHit, l.PrefetchLate, l.PrefetchWasted, l.PrefetchHeld)
		}
	}
	return nil
}

func argmax(v []float32) int32 {
	best := 0
	for i := range v {
		if v[i] > v[best] {
			best = i
		}
	}
	return int32(best)
}

func scripts(vocab int) []script {
	r := rand.New(rand.NewPCG(7, 7))
	prompt := func(n int) []int32 {
		p := make([]int32, n)
		for i := range p {
			p[i] = int32(r.IntN(vocab))
		}
		return p
	}
	return []script{{prompt: prompt(9), decode: 3}, {prompt: prompt(1), decode: 4, want: stages.BestLogits}, {prompt: prompt(5), decode: 2, want: stages.BestLogits}}
}

// alone returns the logits of each conversation held alone.
func (p *pack) alone(t *testing.T, all []script) [][][]float32 {
	t.Helper()
	want := make([][][]float32, len(all))
	for i, sc := range all {
		s := p.simulate(t, tuning{depth: 1, slots: 32, waveSlots: 8, steps: 1, chunkRows: 16}, rand.New(rand.NewPCG(1, 1)), faults{})
		got, errs, err := s.play([]script{sc})
		if err != nil || errs[0] != nil {
			t.Fatal(err, errs)
		}
		want[i] = got[0]
		s.close()
	}
	return want
}

// TestOrders plays the same three conversations under many orders of delivery and settings, and
// wants the bits of each conversation held alone.
func TestOrders(t *testing.T) {
	p := openPack(t, "qwen3_5_moe/bf16")
	all := scripts(p.cfg.VocabSize)
	want := p.alone(t, all)
	n := testenv.Rounds(100, *orders, 30**orders)
	events := 0
	for i := range n {
		sd := uint64(i) + 1
		if *seed != 0 {
			sd, n = *seed, 1
		}
		r := rand.New(rand.NewPCG(sd, 2))
		tu := randomTuning(r, p.cfg.NumExperts, len(p.cfg.Layers))
		tu.resident = r.IntN(4) == 0
		s := p.simulate(t, tu, r, faults{})
		got, errs, err := s.play(all)
		if err = errors.Join(append(errs, err)...); err == nil {
			err = sameBits(got, want)
		}
		if n := s.dispatch.Recorded(); err == nil && tu.resident && n > 0 {
			err = fmt.Errorf("dispatch: %d recordings were never taken back", n)
		}
		events += s.Events
		s.close()
		if err != nil {
			t.Fatalf("seed %d, %+v: %v", sd, tu, err)
		}
		if *seed != 0 {
			break
		}
	}
	t.Logf("%d orders, %d events, equal bits in all", n, events)
}

func randomTuning(r *rand.Rand, experts, layers int) tuning {
	tu := tuning{
		depth: 1 + r.IntN(3), waveSlots: 1 + r.IntN(experts), steps: 1 + r.IntN(3), chunkRows: 1 + r.IntN(12),
		lastToken: r.IntN(2) == 0, nextGate: r.IntN(2) == 0, ahead: 1 + r.IntN(2), aheadRows: r.IntN(12),
		resize: r.IntN(2) == 0, warm: r.IntN(3) == 0, share: 1 - 0.99*r.Float64(),
	}
	if r.IntN(4) == 0 {
		tu.share = 1
	}
	tu.reads = max(0, r.IntN(6)-1)
	tu.slots = tu.waveSlots + r.IntN(experts*layers)
	if r.IntN(3) == 0 {
		tu.slots = tu.waveSlots
	}
	if r.IntN(2) == 0 {
		tu.host = hostTuning{records: 1 + r.IntN(experts), block: 1 + r.IntN(4)}
	}
	if layers > 1 && r.IntN(3) == 0 {
		tu.border = 1 + r.IntN(layers-1)
		tu.slots = max(tu.slots, 2*tu.waveSlots)
	}
	return tu
}

func sameBits(got, want [][][]float32) error {
	for i := range want {
		if len(got[i]) != len(want[i]) {
			return fmt.Errorf("conversation %d: %d answers, want %d", i, len(got[i]), len(want[i]))
		}
		for j := range want[i] {
			if !slices.Equal(got[i][j], want[i][j]) {
				return fmt.Errorf("conversation %d: logits %d differ from those of the conversation alone", i, j)
			}
		}
	}
	return nil
}

// TestSpeculation counts what becomes of speculative reads under many orders and settings, some of
// whose reads fail, in the midst of conversations and after them: nothing is lost, and each end
// occurs.
func TestSpeculation(t *testing.T) {
	p := openPack(t, "qwen3_5_moe/bf16")
	all := scripts(p.cfg.VocabSize)
	n := testenv.Rounds(50, *orders/5, 6**orders)
	var sum stages.LayerStats
	for sd := range uint64(n) {
		r := rand.New(rand.NewPCG(sd, 5))
		tu := randomTuning(r, p.cfg.NumExperts, len(p.cfg.Layers))
		s := p.simulate(t, tu, r, faults{read: func(rd stages.Read) error {
			if sd%2 == 0 && r.IntN(200) == 0 {
				return errDisk
			}
			return nil
		}})
		if err := s.countSpeculation(r, all, &sum); err != nil {
			t.Fatalf("seed %d, %+v: %v", sd, tu, err)
		}
		s.close()
	}
	for what, n := range map[string]int64{
		"hits": sum.PrefetchHit, "late": sum.PrefetchLate, "wasted": sum.PrefetchWasted, "held": sum.PrefetchHeld,
		"dropped": sum.PrefetchDropped, "declined": sum.PrefetchDeclined,
	} {
		if n == 0 {
			t.Errorf("%s: none, the test shows nothing of them", what)
		}
	}
	t.Logf("%d orders: %d speculative reads, %d hits, %d late, %d wasted, %d held; %d dropped, %d declined, %d skipped in %d pauses", n,
		sum.PrefetchIssued, sum.PrefetchHit, sum.PrefetchLate, sum.PrefetchWasted, sum.PrefetchHeld, sum.PrefetchDropped, sum.PrefetchDeclined,
		sum.PrefetchSkipped, sum.PrefetchPauses)
}

// countSpeculation plays the scripts once and looks at the figures now and then.
func (s *simulation) countSpeculation(r *rand.Rand, all []script, sum *stages.LayerStats) error {
	for i := range all {
		s.Post(&stages.OpenSequence{Seq: stages.SeqID(i + 1), Caller: i})
	}
	for round := range 4 {
		for i, sc := range all {
			tokens := sc.prompt
			if round > 0 {
				tokens = sc.prompt[:1]
			}
			s.Post(&stages.EvalChunk{Seq: stages.SeqID(i + 1), Tokens: slices.Clone(tokens), Caller: i})
		}
		until := s.Events + r.IntN(400)
		if err := s.Run(func() bool { return s.Events >= until }); err != nil {
			return err
		}
		st, err := s.stats()
		if err == nil {
			err = conserved(st)
		}
		if err == nil {
			err = s.Run(nil)
		}
		if err != nil {
			return err
		}
	}
	st, err := s.stats()
	if err != nil {
		return err
	}
	for _, l := range st.Layers {
		sum.PrefetchIssued += l.PrefetchIssued
		sum.PrefetchHit += l.PrefetchHit
		sum.PrefetchLate += l.PrefetchLate
		sum.PrefetchWasted += l.PrefetchWasted
		sum.PrefetchHeld += l.PrefetchHeld
		sum.PrefetchDropped += l.PrefetchDropped
		sum.PrefetchDeclined += l.PrefetchDeclined
		sum.PrefetchSkipped += l.PrefetchSkipped
		sum.PrefetchPauses += l.PrefetchPauses
	}
	return errors.Join(conserved(st), s.AtRest())
}

// TestFailingReads lets reads fail at random: conversations that were hit get the read's error and
// are poisoned, the others get the bits they would get alone, and the pipeline comes to rest.
func TestFailingReads(t *testing.T) {
	p := openPack(t, "qwen3_5_moe/bf16")
	all := scripts(p.cfg.VocabSize)
	broken := errors.New("the disk is broken")
	hit, whole, spared := 0, 0, 0
	n := testenv.Rounds(50, *orders/5, 6**orders)
	for sd := range uint64(n) {
		r := rand.New(rand.NewPCG(sd, 3))
		tu := randomTuning(r, p.cfg.NumExperts, len(p.cfg.Layers))
		s := p.simulate(t, tu, r, faults{read: func(stages.Read) error {
			if r.IntN(60) == 0 {
				return broken
			}
			return nil
		}})
		got, errs, err := s.play(all)
		if err != nil {
			t.Fatalf("seed %d, %+v: %v", sd, tu, err)
		}
		for i, e := range errs {
			var step *stages.StepError
			switch {
			case e == nil && len(got[i]) == all[i].decode+1:
				whole++
			case errors.Is(e, broken) && errors.As(e, &step):
				hit++
			default:
				t.Fatalf("seed %d, conversation %d: %d answers, error %v", sd, i, len(got[i]), e)
			}
		}
		spared += s.Spared()
		s.close()
	}
	if hit == 0 || whole == 0 || spared == 0 {
		t.Fatalf("%d conversations were hit, %d not, %d went on beside one: the test shows nothing", hit, whole, spared)
	}
	t.Logf("%d orders: %d conversations failed with the read's error, %d were answered in full, %d times a layer went on without another", n, hit, whole, spared)
}
