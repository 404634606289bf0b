package schedule

// notDue returns why a decode step may not be formed now that the device would run amid what has
// begun of prompts. If that is a matter of time, a wait for it has begun.
func (s *Schedule[R]) notDue() Why {
	p, w := &s.pace, &s.waits
	if len(s.ready[Prompt]) == 0 && p.count(Prompt) == 0 {
		w.over = false
		return Nothing
	}
	if p.count(Decode) > 0 { // else one decode step after the other would keep prompts from the device
		return Room
	}
	if w.over || p.given >= p.layers {
		return Nothing
	}
	at := p.due(s.decodeRows())
	if at <= p.now {
		return Nothing
	}
	if p.stretch < promptsFirst {
		p.dueAt = at
		w.begin(at)
	}
	return OtherKind
}

// due returns when a decode step of some rows is to begin so that it ends in time: prompts have the
// device until then.
func (p *pace) due(rows int) int64 {
	alone, beside, off := p.decode(rows)
	if alone == 0 {
		return 0
	}
	return p.ended + int64(max(p.stretch*alone-beside-off, leastPause*(p.stretch-1)*alone))
}

// leastPause is what prompts get at least of their share of time where decode steps beside them
// take much longer than alone: they still come forward.
const leastPause = 0.5
