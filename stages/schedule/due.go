package schedule

// notDue returns why a decode step may not be formed now that the device would run amid what has
// begun of prompts.
func (s *Schedule[R]) notDue() Why {
	p := &s.pace
	switch {
	case !s.prompts():
		return Nothing
	case p.stretch >= promptsFirst && p.given < p.layers:
		return OtherKind
	}
	return Nothing
}

// prompts reports whether a prompt is ready or in a step.
func (s *Schedule[R]) prompts() bool { return len(s.ready[Prompt]) > 0 || s.pace.count(Prompt) > 0 }

// Holds reports whether a decode step that is computed is to be handed over later: until it is due,
// prompts have the device. The caller asks when the step is done, and after that whenever anything
// has happened, until the answer is no. Then it calls Ended.
func (s *Schedule[R]) Holds(id uint64) bool {
	p, w := &s.pace, &s.waits
	st := p.find(id)
	if st == nil || st.kind != Decode || !p.preempts {
		return false
	}
	if st.done == 0 {
		st.done = p.now
		st.due = p.due(st)
	}
	if w.over || !s.prompts() || p.given >= p.layers || st.due <= p.now {
		return false
	}
	w.begin(st.due, true)
	return true
}

// due returns when a decode step that is computed now is due: so long after the one before that
// prompts have their share of the time. One that took long is due at once, unless prompts have had
// too little several times.
func (p *pace) due(s *running) int64 {
	alone, _, _ := p.decode(s.rows)
	if alone == 0 || p.stretch >= promptsFirst {
		return 0
	}
	at := p.ended + int64(p.stretch*alone)
	if least := p.least(alone); p.owed > mostOwed*least {
		at = max(at, p.now+int64(least))
	}
	return at
}

// least returns what prompts get at least after decode steps, on average.
func (p *pace) least(alone float64) float64 { return leastPause * (p.stretch - 1) * alone }

// pay notes what prompts have had after a decode step that is handed over.
func (p *pace) pay(s *running) {
	if !s.company {
		p.owed = 0
		return
	}
	alone, _, _ := p.decode(s.rows)
	p.owed = max(0, p.owed+p.least(alone)-float64(p.now-s.done))
}

const (
	// leastPause is what prompts get at least of their share of time, on average, where decode
	// steps beside them take much longer than alone: they still come forward.
	leastPause = 0.25
	// mostOwed is how many times that may be missing at a moment: some tokens one after the other
	// take long where the subject changes, and they are not to wait for prompts besides.
	mostOwed = 16
)
