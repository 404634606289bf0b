package host

import (
	"slices"
	"time"

	"github.com/moeflux/moeflux-actor/actors/remote/frame"
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/dispatch"
)

// job is an ask on its way: a step of one layer.
type job struct {
	conn     *conn
	ask      uint64
	question *frame.Question
	arrived  time.Time // when the ask was read from the stream
	begun    time.Time // when expert-IO got it
	step     stages.Step
	sums     *sums // nil: each wave is answered by itself
}

// sums is what a job keeps until all of its experts are computed.
type sums struct {
	outputs  [][]float32 // of each of the question's uses, in memory of waves
	memory   [][]byte    // of these
	uses     []int32
	computed time.Duration
}

// wave is experts of a job that one submission computes.
type wave struct {
	job      *job
	resident stages.WaveResident
	uses     []int32 // the memory of resident's
	work     dispatch.Lent
	commands gpu.Commands
	bench    *dispatch.Bench
	answer   []byte    // with the outputs
	out      []float32 // within it
	sent     time.Time
	err      error
}

// begin gives an ask to expert-IO as the plan of a step.
func (h *Host) begin(j *job) error {
	h.last++
	j.begun = time.Now()
	q := j.question
	rows := len(q.Inputs) / h.shape.Hidden
	j.step = stages.Step{ID: h.last, Layer: q.Layer, Batch: &stages.Batch{
		Rows: make([]stages.Row, rows), Segments: []stages.Segment{{Rows: rows}}, Costs: make([]stages.Cost, 1), Urgent: q.Urgent,
	}}
	plan := &stages.RoutePlan{TopK: len(q.Uses), Pairs: make([]int32, 0, q.Picks())}
	for i := range q.Uses {
		u, from := &q.Uses[i], len(plan.Pairs)
		for _, row := range u.Rows { // each row's picks are numbered by expert
			plan.Pairs = append(plan.Pairs, row*int32(plan.TopK)+int32(i))
		}
		plan.Uses = append(plan.Uses, stages.ExpertUse{Expert: int32(u.Expert), Pairs: plan.Pairs[from:]})
	}
	if len(q.Scales) > 0 {
		j.sums = &sums{outputs: make([][]float32, len(q.Uses))}
	}
	h.jobs[h.last] = j
	return h.step(&stages.LayerRouted{Step: j.step, Plan: plan})
}

// waveResident has the experts of a wave computed.
func (h *Host) waveResident(m *stages.WaveResident) {
	j := h.jobs[m.ID]
	w := &wave{job: j, resident: *m, uses: append([]int32(nil), m.Uses...), sent: time.Now()}
	if j == nil { // the job has failed meanwhile
		h.sendHome(w)
		return
	}
	w.work = dispatch.Lent{Layer: m.Layer, Inputs: j.question.Inputs}
	picks := 0
	for i, use := range m.Uses {
		u := &j.question.Uses[use]
		picks += len(u.Rows)
		w.work.Experts = append(w.work.Experts, dispatch.LentExpert{Expert: u.Expert, View: h.memory.View(m.Slots[i]), Rows: u.Rows})
	}
	w.answer, w.out = frame.MakeAnswer(h.memoryOf(), j.ask, w.uses, picks*h.shape.Hidden)
	if n := len(h.spare) - 1; n >= 0 {
		w.bench, h.spare = h.spare[n], h.spare[:n]
	} else {
		w.bench = h.lender.NewBench()
		h.benches = append(h.benches, w.bench)
	}
	w.commands.Urgent = j.question.Urgent
	err := w.bench.Encode(&w.commands, &w.work, w.out)
	if err == nil {
		var t gpu.Ticket
		if t, err = h.queue.Submit(&w.commands); err == nil {
			t.OnDone(func(err error) {
				w.err = err
				h.put(w)
			})
			return
		}
	}
	w.err = err
	h.endWave(w)
}

// waveDone answers what the device has computed.
func (h *Host) waveDone(w *wave) error {
	h.endWave(w)
	return h.run()
}

// endWave answers, and gives back what the wave has held.
func (h *Host) endWave(w *wave) {
	h.spare = append(h.spare, w.bench)
	h.sendHome(w)
	j := w.job
	if h.jobs[j.step.ID] != j {
		h.keep(w.answer)
		return
	}
	if w.err != nil {
		h.keep(w.answer)
		h.fail(j, w.err)
		return
	}
	spent := frame.Spent{Waited: j.begun.Sub(j.arrived), Read: w.sent.Sub(j.begun), Computed: time.Since(w.sent)}
	if j.sums == nil {
		h.reply(j, w.answer, w.uses, spent)
	} else {
		j.sums.take(j.question, w, h.shape.Hidden)
		j.sums.computed += spent.Computed
		if spent.Computed = j.sums.computed; w.resident.Last {
			h.reply(j, h.sum(j), j.sums.uses, spent)
		}
	}
	if w.resident.Last {
		h.over(j)
	}
}

// take keeps what a wave has computed.
func (s *sums) take(q *frame.Question, w *wave, hidden int) {
	s.memory, s.uses = append(s.memory, w.answer), append(s.uses, w.uses...)
	out := w.out
	for _, use := range w.uses {
		n := len(q.Uses[use].Rows) * hidden
		s.outputs[use], out = out[:n], out[n:]
	}
}

// sum returns the answer of a job whose experts are all computed.
func (h *Host) sum(j *job) []byte {
	s, q := j.sums, j.question
	slices.Sort(s.uses)
	answer, rows := frame.MakeAnswer(h.memoryOf(), j.ask, s.uses, len(q.Inputs))
	q.Sum(rows, h.shape.Hidden, s.outputs)
	for _, m := range s.memory {
		h.keep(m)
	}
	return answer
}

// reply sends an answer, whose memory it keeps for another.
func (h *Host) reply(j *job, answer []byte, uses []int32, spent frame.Spent) {
	frame.Spend(answer, spent)
	j.conn.send(answer)
	h.keep(answer)
	if t := &j.question.Trace; t.Flags&1 != 0 {
		h.cfg.Logger.Debug("experts were computed", "layer", j.step.Layer, "experts", len(uses), "waited", spent.Waited, "read", spent.Read, "computed", spent.Computed, "traceparent", t)
	}
}

// memoryOf returns memory for an answer, and keep keeps it for the next one.
func (h *Host) memoryOf() (b []byte) {
	if n := len(h.answers) - 1; n >= 0 {
		b, h.answers = h.answers[n], h.answers[:n]
	}
	return b
}

func (h *Host) keep(b []byte) {
	if len(h.answers) < ringDepth && cap(b) <= keepBytes {
		h.answers = append(h.answers, b)
	}
}

// sendHome gives a wave's slots back to expert-IO.
func (h *Host) sendHome(w *wave) {
	if len(w.resident.Slots) > 0 {
		h.todo = append(h.todo, stages.Send{To: stages.ExpertIO, Msg: &stages.SlotsReleased{Step: w.resident.Step, Wave: w.resident.Wave, Slots: w.resident.Slots}})
	}
}

// fail ends a job that cannot be computed.
func (h *Host) fail(j *job, err error) {
	h.cfg.Logger.Warn("experts could not be computed", "layer", j.step.Layer, "error", err, "traceparent", &j.question.Trace)
	j.conn.send(frame.AppendReason(nil, frame.Failed, j.ask, err.Error()))
	h.over(j)
	h.todo = append(h.todo, stages.Send{To: stages.ExpertIO, Msg: &stages.DrainStep{Step: j.step}})
}

// over forgets a job.
func (h *Host) over(j *job) {
	delete(h.jobs, j.step.ID)
	j.conn.asks.Add(-1)
	h.conns.work.Add(-1)
}
