package schedule

// apart tells whether sequences that decode share all steps, or have steps of their own while
// another is under way. Shared steps read experts and weights once for all of them. Steps of their
// own pay where one sequence waits for the disk all the time and another does not, or where one
// step's reads hide behind what another computes. Nobody can know which it is, so the other way is
// tried now and then, for a window of tokens, and kept if that is quicker than the window before.
// Where several devices compute the layers, steps of their own come first: shared ones would keep
// one device at work at a time.
type apart struct {
	on    bool // steps of their own
	trial bool // of the way that is on
	left  int  // windows until the next trial
	gap   int  // windows between the last trial and the next

	rows       int     // of the window under way
	most       int     // sequences that decoded at once in it
	began      int64   // when it began; 0: none is under way
	before     float64 // what a row took in the window before, of as many sequences; 0: not known
	beforeMost int
}

const (
	apartWindow = 32   // tokens of each sequence
	apartFirst  = 2    // windows before the first trial
	apartLast   = 64   // the most windows between two trials
	quicker     = 0.95 // of what a row took before: what is tried is kept
	slower      = 1.15 // likewise: it is given up after a part of a window
	enough      = 4    // a quarter
)

func newApart(on bool) apart { return apart{on: on, left: apartFirst, gap: apartFirst} }

// decoding returns how many sequences decode: they are in a step, ready, or expected.
func (s *Schedule[R]) decoding() int {
	n := len(s.ready[Decode]) + len(s.waits.seqs)
	for i := range s.pace.steps {
		if st := &s.pace.steps[i]; st.kind == Decode {
			n += st.rows
		}
	}
	return n
}

// splits reports whether sequences that decode have steps of their own now.
func (s *Schedule[R]) splits() bool { return s.apart.on && !s.prompts() }

// together returns the most rows of a decode step: all, or an equal part of them for each of the
// steps that there may be.
func (s *Schedule[R]) together() int {
	if !s.splits() {
		return s.cfg.Rows
	}
	return min(s.cfg.Rows, (s.decoding()+s.cfg.Steps-1)/s.cfg.Steps)
}

// step notes that a decode step of some rows has ended while so many sequences decoded. It counts
// if there are several, and no prompts, which have a say in what things take.
func (a *apart) step(now int64, rows, active int, counts bool) {
	if !counts || active < 2 {
		a.interrupt()
		return
	}
	if a.began == 0 {
		a.began, a.rows, a.most = now, 0, active
		return
	}
	a.rows += rows
	a.most = max(a.most, active)
	row, whole := float64(now-a.began)/float64(a.rows), apartWindow*a.most
	if a.rows >= whole || a.trial && enough*a.rows >= whole && row > slower*a.before {
		a.window(row)
		a.began, a.rows, a.most = now, 0, active
	}
}

// interrupt ends a window that says nothing. What is tried is given up.
func (a *apart) interrupt() {
	if a.trial {
		a.trial, a.on = false, !a.on
		a.left = a.gap
	}
	a.began, a.before = 0, 0
}

// window notes what a row took in a window.
func (a *apart) window(row float64) {
	alike := a.before > 0 && a.most == a.beforeMost
	switch {
	case a.trial:
		a.trial = false
		if alike && row < quicker*a.before {
			a.gap = apartFirst
		} else {
			a.on, a.gap = !a.on, min(2*a.gap, apartLast)
		}
		a.left, a.before = a.gap, 0
		return
	case alike && a.left <= 0:
		a.trial, a.on = true, !a.on
	}
	a.left--
	a.before, a.beforeMost = row, a.most
}
