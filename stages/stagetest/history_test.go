package stagetest_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/internal/testenv"
	"github.com/moeflux/moeflux-actor/snapshot"
	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/dispatch"
)

// editor is a caller that edits one sequence at random. It asks for one thing at a time; several of
// them do so at once.
type editor struct {
	x      *editors
	id     stages.SeqID
	tokens []int32
	gone   []int32 // what it held when that last gave way
	left   int     // things to do
	ended  bool

	then   func(stages.Message) error // takes the next answer
	draft  *stages.StateReady         // is to be filled
	fill   saved
	poison bool

	atLeast int // tokens that a text which is being resumed must have; 0: any number
}

// saved is a state as a file.
type saved struct {
	raw    []byte
	tokens []int32
}

// editors is one simulated life.
type editors struct {
	*simulation
	r      *rand.Rand
	p      *pack
	known  map[string][]float32 // logits by text
	fresh  func(text []int32) ([]float32, error)
	list   []*editor
	lastID stages.SeqID
	files  []saved
	frozen []*stages.StateReady // are being read, while their sequences go on
	faults map[error]int
	seen   int
	counts map[string]int
	err    error
}

// live lets everybody edit until all are done, and wants everything back.
func (x *editors) live() error {
	for range 3 {
		e := &editor{x: x, left: 12}
		x.list = append(x.list, e)
		e.open(0)
	}
	for {
		if err := x.Run(x.between); err != nil || x.err != nil {
			return errors.Join(err, x.err)
		}
		if !x.goOn() { // nothing else is left to happen
			break
		}
	}
	for _, e := range x.list {
		if !e.ended {
			return fmt.Errorf("sequence %d was forgotten with %d things to do", e.id, e.left)
		}
	}
	x.Post(&stages.ForgetTexts{Caller: "forget"})
	if err := x.Run(nil); err != nil {
		return err
	}
	st, err := x.stats()
	switch {
	case err != nil:
		return err
	case len(x.parked) != 0 || st.States.Parked != 0:
		return fmt.Errorf("everything is closed, but the parking store has %d states, the sequencer knows of %d", len(x.parked), st.States.Parked)
	case st.PagesUsed != 0 || st.States.Kept != 0 || st.States.KeptBytes != 0 || x.dispatch.States() != 0:
		return fmt.Errorf("everything is closed, but %d pages are in use, %+v is kept and dispatch has %d states", st.PagesUsed, st.States, x.dispatch.States())
	}
	x.counts["remembered"] += int(st.States.Remembered)
	x.counts["evicted"] += int(st.States.Evicted)
	x.counts["brought back"] += int(st.States.Returns)
	x.counts["reused tokens"] += int(st.States.Reused)
	x.counts["waited"] += int(st.Admission.Waited)
	x.counts["granted"] += int(st.Admission.Granted)
	x.counts["turned away"] += int(st.Admission.TurnedAway)
	return x.AtRest()
}

// between takes answers, and goes on with states that are held, now and then.
func (x *editors) between() bool {
	for ; x.seen < len(x.Answers); x.seen++ {
		e, ok := x.Answers[x.seen].To.(*editor)
		if x.Answers[x.seen].To == "keeper" {
			x.err = errors.Join(x.err, x.keeper(x.Answers[x.seen].Msg.(*stages.SequenceDone)))
		}
		if !ok {
			continue
		}
		if x.err = e.take(x.Answers[x.seen].Msg); x.err != nil {
			x.err = fmt.Errorf("sequence %d, %d tokens: %w", e.id, len(e.tokens), x.err)
			return true
		}
	}
	if x.err == nil && x.r.IntN(100) == 0 {
		x.goOn()
	}
	if x.err == nil && x.r.IntN(50) == 0 { // whoever waits for memory need not
		x.Post(&stages.Withdraw{Of: x.list[x.r.IntN(len(x.list))], Cause: errGone})
	}
	return x.err != nil
}

// goOn reads a frozen state, or fills a draft; it reports false if there is none.
func (x *editors) goOn() bool {
	drafts := slices.DeleteFunc(slices.Clone(x.list), func(e *editor) bool { return e.draft == nil })
	n := len(x.frozen) + len(drafts)
	if n == 0 {
		return false
	}
	if i := x.r.IntN(n); i < len(x.frozen) {
		held := x.frozen[i]
		x.frozen = slices.Delete(x.frozen, i, i+1)
		x.err = x.save(held)
	} else {
		x.err = drafts[i-len(x.frozen)].load()
	}
	return true
}

// save reads a frozen state.
func (x *editors) save(held *stages.StateReady) error {
	var b bytes.Buffer
	tokens := slices.Clone(held.Tokens)
	_, err := snapshot.Write(&b, snapshot.ShapeOf(x.p.cfg), held.Memory.(*dispatch.Image), snapshot.WriteOptions{Positions: len(tokens)})
	x.files = append(x.files, saved{b.Bytes(), tokens})
	x.counts["saved"]++
	x.Post(&stages.ReleaseState{State: held.State})
	return err
}

// open makes the editor's sequence anew, as another one stands; 0 is an empty one.
func (e *editor) open(from stages.SeqID) {
	e.x.lastID++
	e.id, e.poison = e.x.lastID, false
	class := stages.Class(e.x.r.IntN(stages.NumClasses)) + stages.Background
	e.ask(&stages.OpenSequence{Seq: e.id, From: from, Class: class, Key: string(rune('a' + e.x.r.IntN(2))), Caller: e}, func(a stages.Message) error {
		d := a.(*stages.SequenceDone)
		switch {
		case d.Err == nil && from != 0: // whose sequence has gone on since, perhaps
			e.ask(&stages.DescribeSequence{Seq: e.id, Caller: e}, func(a stages.Message) error {
				e.tokens = slices.Clone(a.(*stages.SequenceDone).Tokens)
				return e.next()
			})
			return nil
		case d.Err == nil:
			e.tokens = nil
			return e.next()
		case errors.Is(d.Err, errDevice) || from != 0: // busy, poisoned or closed meanwhile
			e.open(0)
			return nil
		}
		return d.Err
	})
}

func (e *editor) ask(m stages.Message, then func(stages.Message) error) {
	e.then = then
	e.x.Post(m)
}

func (e *editor) take(a stages.Message) error {
	if e.then == nil {
		return fmt.Errorf("an answer that nobody asked for: %T %+v", a, a)
	}
	then := e.then
	e.then = nil
	return then(a)
}

// next does another thing.
func (e *editor) next() error {
	x, r := e.x, e.x.r
	switch r.IntN(8) {
	case 0: // go on at once
		x.park(e.id)
	case 1: // and when it is parked
		x.park(e.id)
		e.look()
		return nil
	}
	if e.left--; e.left <= 0 && !e.poison {
		return e.close()
	}
	do := r.IntN(20)
	if e.poison { // only what heals
		do = []int{9, 11, 14, 16, 18}[r.IntN(5)] // 11 and 18: truncate and reset
	}
	switch {
	case do < 7:
		e.eval(x.some(1+r.IntN(9)), 0)
	case do < 9:
		e.change("checkpoint", &stages.KeepCheckpoint{Seq: e.id, Pos: len(e.tokens), Caller: e}, nil)
	case do < 11:
		e.change("restore", &stages.RestoreCheckpoint{Seq: e.id, Pos: e.somewhere(), Caller: e}, nil)
	case do < 12:
		e.change("truncate", &stages.TruncateSequence{Seq: e.id, Pos: e.somewhere(), Nearest: r.IntN(3) > 0 || e.poison, Caller: e}, nil)
	case (do == 12 || do == 13 || do == 16) && len(x.files) > 0:
		e.makeDraft()
	case do < 16:
		e.resume()
	case do == 17 && r.IntN(2) == 0:
		e.freezeText()
	case do == 17:
		e.freeze()
	case do == 18 && !e.poison:
		e.change("cap", &stages.CapCheckpoints{Seq: e.id, Max: r.IntN(6) - 1, Caller: e}, nil)
	case do == 19:
		return e.fork()
	default:
		e.change("reset", &stages.ResetSequence{Seq: e.id, Caller: e}, nil)
	}
	return nil
}

func (e *editor) somewhere() int { return e.x.r.IntN(len(e.tokens)/4+2) * 4 }

func (x *editors) some(n int) []int32 {
	tokens := make([]int32, n)
	for i := range tokens {
		tokens[i] = int32(x.r.IntN(2))
	}
	return tokens
}

// change asks for another state; where it succeeds the sequence holds the first Pos positions of
// its text, or of the one that is given.
func (e *editor) change(what string, m stages.Message, text []int32) {
	e.ask(m, func(a stages.Message) error {
		d := a.(*stages.SequenceDone)
		var linear *stages.CannotTruncateLinear
		var none *stages.NoCheckpointError
		var full *stages.CheckpointMemoryError
		stuck := errors.Is(d.Err, errStore) // parked, and lost
		less := errors.Is(d.Err, stages.ErrLessKnown) && e.atLeast > 0
		if least := e.atLeast; d.Kind == stages.Resumed && d.Err == nil && d.Pos < least {
			return fmt.Errorf("%s: %d positions, where %d were to be had or none", what, d.Pos, least)
		}
		e.atLeast = 0
		device := errors.Is(d.Err, errDevice)
		failed := device && d.Poison != nil // else a parked state could not be brought back, and is there still
		memory := noMemory(d.Err)
		if d.Err != nil && !device && !memory && !stuck && !less && !errors.As(d.Err, &linear) && !errors.As(d.Err, &none) && !errors.As(d.Err, &full) {
			return fmt.Errorf("%s: %w", what, d.Err)
		}
		if memory {
			e.x.counts["no memory for what heals or resumes"]++
		}
		e.x.counts[what]++
		if stuck {
			e.x.counts["parked and lost"]++
		}
		if less {
			e.x.counts["less was known"]++
		}
		if failed {
			e.x.counts[what+" that failed"]++
		}
		switch {
		case d.Err != nil && !failed:
			if d.Pos != len(e.tokens) {
				return fmt.Errorf("%s: refused, but %d positions", what, d.Pos)
			}
		case text != nil:
			e.tokens = slices.Clone(text[:d.Pos])
		case d.Pos > len(e.tokens): // by a checkpoint of a text that gave way
			e.tokens = slices.Clone(e.gone[:d.Pos])
		default:
			e.tokens = slices.Clone(e.tokens[:d.Pos])
		}
		e.poison = d.Poison != nil
		if text != nil && !e.poison && d.Err == nil && len(text) > d.Pos {
			e.eval(text[d.Pos:], d.Pos)
			return nil
		}
		return e.next()
	})
}

// resume takes a text that begins as somebody's.
func (e *editor) resume() {
	o := e.x.list[e.x.r.IntN(len(e.x.list))]
	text := append(slices.Clone(o.tokens[:e.x.r.IntN(len(o.tokens)+1)]), e.x.some(1+e.x.r.IntN(6))...)
	m := &stages.ResumeSequence{Seq: e.id, Tokens: slices.Clone(text), Until: e.until(len(text)), Caller: e}
	if e.x.r.IntN(3) == 0 {
		m.AtLeast = 1 + e.x.r.IntN(len(text))
	}
	e.atLeast = m.AtLeast
	e.change("resume", m, text)
}

// until declares an end now and then.
func (e *editor) until(least int) int {
	if e.x.r.IntN(2) == 0 {
		return 0
	}
	return least + e.x.r.IntN(10) - 2
}

// eval appends tokens and compares the logits.
func (e *editor) eval(tokens []int32, before int) {
	if len(e.tokens)+len(tokens) > 60 {
		e.change("reset", &stages.ResetSequence{Seq: e.id, Caller: e}, nil)
		return
	}
	m := &stages.EvalChunk{
		Seq: e.id, Pos: stages.At(len(e.tokens)), Tokens: slices.Clone(tokens), Before: before, Remember: e.x.r.IntN(2) == 0, Until: e.until(len(e.tokens) + len(tokens)),
		Caller: e,
	}
	e.ask(m, func(a stages.Message) error {
		d := a.(*stages.ChunkEvaluated)
		var full *stages.StateMemoryError
		if d.Err != nil && !errors.Is(d.Err, errDevice) && !errors.Is(d.Err, errDisk) && !errors.Is(d.Err, errStore) && !noMemory(d.Err) {
			return d.Err
		}
		e.x.counts["eval"]++
		if d.Poison != nil {
			e.x.counts["poison"]++
		}
		e.tokens = append(slices.Clip(e.tokens), tokens[:d.Rows]...)
		e.poison = d.Poison != nil
		if errors.As(d.Poison, &full) {
			e.x.counts["gave way"]++
			e.lose()
		}
		if d.Err == nil {
			want, err := e.x.fresh(e.tokens)
			if err != nil {
				return err
			}
			if !slices.Equal(d.Logits, want) {
				return fmt.Errorf("logits after %v differ from those of a fresh reading", e.tokens)
			}
		} else if noMemory(d.Err) {
			e.x.counts["no memory"]++
		}
		return e.next()
	})
}

// noMemory reports whether an error is one of those that say that a request got no memory.
func noMemory(err error) bool {
	return errors.As(err, new(*stages.StateMemoryError)) || errors.As(err, new(*stages.QueueFullError)) || errors.Is(err, errGone)
}

// freeze asks for a frozen state, and goes on.
func (e *editor) freeze() {
	e.ask(&stages.FreezeSequence{Seq: e.id, Caller: e}, func(a stages.Message) error {
		d := a.(*stages.StateReady)
		switch {
		case d.Err == nil && !slices.Equal(d.Tokens, e.tokens):
			return fmt.Errorf("the state of %v is that of %v", e.tokens, d.Tokens)
		case d.Err == nil:
			e.x.frozen = append(e.x.frozen, d)
		case errors.Is(d.Err, errDevice) || errors.Is(d.Err, errStore) || errors.Is(d.Err, stages.ErrBusy) || noMemory(d.Err):
			e.x.counts["states that were not to be had"]++
			e.look() // its own may be lost
			return nil
		default:
			return d.Err
		}
		return e.next()
	})
}

// freezeText asks for a frozen state of a text that begins as somebody's, and goes on.
func (e *editor) freezeText() {
	o := e.x.list[e.x.r.IntN(len(e.x.list))]
	text := append(slices.Clone(o.tokens), e.x.some(e.x.r.IntN(2)+1)...)
	e.ask(&stages.FreezeText{Tokens: slices.Clone(text), Caller: e}, func(a stages.Message) error {
		d := a.(*stages.StateReady)
		switch {
		case d.Err == nil && (len(d.Tokens) == 0 || len(d.Tokens) > len(text) || !slices.Equal(d.Tokens, text[:len(d.Tokens)])):
			return fmt.Errorf("the state of %v is that of %v", text, d.Tokens)
		case d.Err == nil:
			e.x.counts["texts frozen"]++
			e.x.frozen = append(e.x.frozen, d)
		case !errors.Is(d.Err, stages.ErrUnknownState) && !errors.Is(d.Err, errDevice) && !errors.As(d.Err, new(*stages.StateMemoryError)):
			return d.Err
		}
		return e.next()
	})
}

// look asks where the sequence stands, and goes on from there.
func (e *editor) look() {
	e.ask(&stages.DescribeSequence{Seq: e.id, Caller: e}, func(a stages.Message) error {
		d := a.(*stages.SequenceDone)
		e.stand(d)
		if d.Err != nil {
			return d.Err
		}
		return e.next()
	})
}

// stand takes over where the sequence stands: it is as before, or poisoned because it has given its
// state up.
func (e *editor) stand(d *stages.SequenceDone) {
	if errors.Is(d.Poison, stages.ErrGivenUp) {
		e.x.counts["given up"]++
		e.lose()
	}
	e.poison = d.Poison != nil
}

// lose empties the sequence: what it held has given way, but its checkpoints have not.
func (e *editor) lose() {
	if len(e.tokens) > 0 {
		e.gone, e.tokens = e.tokens, nil
	}
}

// makeDraft asks for a draft, which is filled later.
func (e *editor) makeDraft() {
	e.fill = e.x.files[e.x.r.IntN(len(e.x.files))]
	e.ask(&stages.DraftState{Seq: e.id, Positions: len(e.fill.tokens), InPlace: e.x.r.IntN(4) > 0, Caller: e}, func(a stages.Message) error {
		d := a.(*stages.StateReady)
		switch {
		case d.Err == nil:
			e.draft = d
			return nil
		case errors.Is(d.Err, errDevice) || noMemory(d.Err):
			e.x.counts["states that were not to be had"]++
			e.look()
			return nil
		}
		return d.Err
	})
}

// load fills the draft and takes it over.
func (e *editor) load() error {
	draft, text := e.draft, e.fill.tokens
	e.draft = nil
	f, err := snapshot.Open(bytes.NewReader(e.fill.raw), int64(len(e.fill.raw)), snapshot.ShapeOf(e.x.p.cfg), snapshot.ReadOptions{Accept: snapshot.Plain})
	if err == nil {
		err = f.Fill(draft.Memory.(*dispatch.Image))
	}
	if err != nil {
		return err
	}
	if e.x.r.IntN(2) == 0 { // changed its mind
		e.ask(&stages.ReleaseState{State: draft.State, Caller: e}, func(a stages.Message) error {
			d := a.(*stages.SequenceDone)
			if e.stand(d); d.Err != nil || d.Pos != len(e.tokens) && !e.poison {
				return fmt.Errorf("a draft is released: %d positions, %w", d.Pos, d.Err)
			}
			return e.next()
		})
		return nil
	}
	e.ask(&stages.AdoptState{Seq: e.id, State: draft.State, Tokens: slices.Clone(text), Caller: e}, func(a stages.Message) error {
		d := a.(*stages.SequenceDone)
		e.tokens, e.poison = slices.Clone(text), d.Poison != nil
		e.x.counts["loaded"]++
		if d.Err != nil || d.Pos != len(text) {
			return fmt.Errorf("a state of %d positions is adopted: %d, %w", len(text), d.Pos, d.Err)
		}
		return e.next()
	})
	return nil
}

// fork closes the sequence and makes another one as somebody else's stands.
func (e *editor) fork() error {
	o := e.x.list[e.x.r.IntN(len(e.x.list))]
	from := o.id
	if o == e {
		from = 0
	}
	e.ask(&stages.CloseSequence{Seq: e.id, Caller: e}, func(a stages.Message) error {
		if err := a.(*stages.SequenceDone).Err; err != nil {
			return err
		}
		e.x.counts["fork"]++
		e.open(from)
		return nil
	})
	return nil
}

func (e *editor) close() error {
	e.ask(&stages.CloseSequence{Seq: e.id, Caller: e}, func(a stages.Message) error {
		e.ended = true
		return a.(*stages.SequenceDone).Err
	})
	return nil
}

// TestEditors lets three callers edit their sequences at random, all at once, under many orders of
// delivery and settings, with little memory and while reads and device commands fail: what is
// answered without an error has the bits of a fresh reading, no step writes to a page that another
// state has (watchedPages), and in the end no page and no state is left.
func TestEditors(t *testing.T) {
	t.Run("recurrent", func(t *testing.T) { testEditors(t, "qwen3_5_moe/bf16") })
	t.Run("softmax", func(t *testing.T) { testEditors(t, "qwen3_moe/bf16") })
}

func testEditors(t *testing.T, name string) {
	p := openPack(t, name)
	n := testenv.Rounds(100, *orders*3/5, 10**orders)
	counts, known := make(map[string]int), make(map[string][]float32)
	for i := range n {
		sd := uint64(i) + 1
		if *seed != 0 {
			sd = *seed
		}
		x, tu := newEditors(t, p, sd)
		x.counts, x.known = counts, known
		err := x.live()
		x.simulation.close()
		if err != nil {
			t.Fatalf("seed %d, %+v, after %d events: %v", sd, tu, x.Events, err)
		}
		if *seed != 0 {
			break
		}
	}
	for _, what := range []string{"eval", "checkpoint", "restore", "truncate", "resume", "saved", "loaded", "fork", "remembered", "evicted", "reused tokens", "poison", "cap", "parked", "brought back", "busy when it was to be parked", "parking that failed", "texts frozen", "less was known"} {
		if counts[what] == 0 {
			t.Errorf("%s: none, the test shows nothing of it", what)
		}
	}
	for _, what := range []string{"given up", "states that were not to be had", "waited", "granted", "turned away", "no memory", "gave way"} {
		if counts[what] == 0 && name == "qwen3_5_moe/bf16" && !testing.Short() {
			t.Errorf("%s: none, the test shows nothing of it", what)
		}
	}
	t.Logf("%d orders: %v; %d texts read for comparison", n, counts, len(known))
}

func newEditors(t *testing.T, p *pack, seed uint64) (*editors, tuning) {
	x := &editors{p: p, r: rand.New(rand.NewPCG(seed, 6)), faults: make(map[error]int)}
	for _, e := range []error{errDisk, errDevice, errStore} {
		x.faults[e] = x.r.IntN(6)
	}
	tu := randomTuning(x.r, p.cfg.NumExperts, len(p.cfg.Layers))
	tu.resident = x.r.IntN(4) == 0
	tu.kept, tu.pages, tu.states = x.r.IntN(8), 64, 2+x.r.IntN(4)
	if x.r.IntN(2) == 0 {
		tu.pages = 6 + x.r.IntN(3)
	}
	tu.parks = x.r.IntN(2) == 0
	tu.sequences, tu.waiting = max(x.r.IntN(8)-4, 0), 1+x.r.IntN(2)
	fail := func(e error) error {
		often := 100
		if e == errStore { // which is asked less often
			often = 5
		}
		if x.simulation != nil && x.faults[e] > 0 && x.r.IntN(often) == 0 {
			x.faults[e]--
			return e
		}
		return nil
	}
	device := func(*gpu.Commands) error { return fail(errDevice) }
	f := faults{read: func(stages.Read) error { return fail(errDisk) }, run: device, park: func(p stages.Park) error {
		if p.Do == stages.ParkForget {
			return nil
		}
		return fail(errStore)
	}}
	if x.r.IntN(2) == 0 {
		f.run, f.submit = f.submit, f.run
	}
	x.simulation = p.simulate(t, tu, x.r, f)
	x.fresh = func(text []int32) ([]float32, error) {
		key := fmt.Sprint(text)
		if l := x.known[key]; l != nil {
			return l, nil
		}
		s := p.simulate(t, tuning{depth: 1, slots: 32, waveSlots: 8, steps: 1, chunkRows: 64}, rand.New(rand.NewPCG(1, 1)), faults{})
		defer s.close()
		got, errs, err := s.play([]script{{prompt: text}})
		if err = errors.Join(append(errs, err)...); err != nil {
			return nil, err
		}
		x.known[key] = got[0][0]
		return got[0][0], nil
	}
	return x, tu
}
