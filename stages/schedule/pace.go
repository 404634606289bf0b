package schedule

// running is a step that is in the pipeline.
type running struct {
	id       uint64
	kind     Kind
	rows     int
	begun    int   // layers
	retired  int   // layers
	free     int64 // a decode step: when the device was expected to have time for it
	done     int64 // a decode step: when it was computed, if it had to be handed over later
	due      int64 // when it is to be handed over
	asked    bool  // nothing of it is left to begin
	company  bool  // a decode step: there were layers of prompts in its time
	measured bool  // it went well so far, so that its time says something
}

// pace measures what steps take, and tells when which kind of them goes. All times are in
// nanoseconds on one clock; a time of 0 is not known.
type pace struct {
	layers   int
	preempts bool    // Config.Preempts
	stretch  float64 // the most from token to token of a sequence, in decode steps alone

	now   int64
	steps []running // in order of forming

	alone  middles // a decode step, by rows, where there are no prompts
	beside curve   // likewise where there are, from the moment at which the device has time for it
	layer  curve   // a layer of a prompt step, by rows

	last  int64   // when a layer of a prompt step retired last
	ended int64   // when a decode step ended last
	given int     // layers of prompt steps that began since a decode step had begun in full
	owed  float64 // time that prompts have not had lately after decode steps
}

// promptsFirst is the stretch at which a decode step goes only between two prompt steps.
const promptsFirst = 1e6

// find returns the step with an id, or nil.
func (p *pace) find(id uint64) *running {
	for i := range p.steps {
		if p.steps[i].id == id {
			return &p.steps[i]
		}
	}
	return nil
}

// count returns how many steps of a kind are in the pipeline.
func (p *pace) count(k Kind) (n int) {
	for i := range p.steps {
		if p.steps[i].kind == k {
			n++
		}
	}
	return n
}

// decoding reports whether a decode step has layers left to begin.
func (p *pace) decoding() bool {
	for i := range p.steps {
		if s := &p.steps[i]; s.kind == Decode && !s.asked {
			return true
		}
	}
	return false
}

// unbegun returns a prompt step that has layers left to begin, or nil.
func (p *pace) unbegun() *running {
	for i := range p.steps {
		if s := &p.steps[i]; s.kind == Prompt && !s.asked {
			return s
		}
	}
	return nil
}

// decode returns what a decode step is expected to take, alone and where there are prompts; 0 if
// that is not known.
func (p *pace) decode(rows int) (alone, beside, off float64) {
	alone, _ = p.alone.at(rows, 0)
	beside, off = p.beside.at(rows, 0)
	switch {
	case alone == 0:
		alone = beside
	case beside == 0:
		beside = alone
	}
	return alone, beside, off
}

// cost returns what a layer of a prompt step is expected to take, 0 if that is not known, and how
// far off that is on average.
func (p *pace) cost(rows int) (ns, off float64) {
	alone, _, _ := p.decode(1)
	return p.layer.at(rows, alone/float64(p.layers))
}

// expected returns when the device will have done what has begun, and when the decode step that was
// in the pipeline last will have ended, or has.
func (p *pace) expected() (free, ended float64) {
	now := float64(p.now)
	free, ended = now, float64(p.ended)
	work := 0.0
	for i := range p.steps {
		switch s := &p.steps[i]; {
		case s.begun == s.retired:
		case s.kind == Prompt:
			one, _ := p.cost(s.rows)
			if work == 0 { // the oldest is under way
				work -= min(max(now-float64(p.last), 0), one)
			}
			work += float64(s.begun-s.retired) * one
		default:
			_, beside, _ := p.decode(s.rows)
			ended = max(ended, float64(s.free)+beside, now)
			free = max(free, ended)
		}
	}
	return free + max(work, 0), ended
}

// fits reports whether n more layers of a prompt step leave enough time for a decode step of some
// rows to be in time.
func (p *pace) fits(rows, n, decodeRows int) bool {
	alone, beside, _ := p.decode(decodeRows)
	if alone == 0 {
		return false
	}
	free, ended := p.expected()
	one, _ := p.cost(rows)
	return free+float64(n)*one+beside <= ended+p.stretch*alone
}

// turn reports whether n layers of a prompt step go before a decode step of some rows.
func (p *pace) turn(s *running, n, decodeRows int) bool {
	if p.stretch >= promptsFirst {
		return p.given < p.layers
	}
	return p.given == 0 && n == 1 || p.given < p.layers && p.fits(s.rows, n, decodeRows)
}

// promptRows returns how many rows, at most most, a prompt step should have so that whole layers of
// it fill the time between decode steps of some rows.
func (p *pace) promptRows(most, decodeRows int) int {
	alone, beside, off := p.decode(decodeRows)
	if alone == 0 || p.stretch >= promptsFirst {
		return most
	}
	room := max(planned*(p.stretch*alone-beside-min(off, beside/8)), alone/2)
	best, got := 1, 0
	for n := 1; n <= mostLayers; n++ {
		rows := p.within(room/float64(n), most)
		if n*rows > got {
			best, got = rows, n*rows
		}
		if rows == 1 {
			break
		}
	}
	return max(best, p.worth(most))
}

// worth returns the least rows, to a quarter, of which a layer reads a prompt at half the speed of
// most rows. Where experts are streamed, few rows read nearly as many of them as many rows do.
func (p *pace) worth(most int) int {
	all, _ := p.cost(most)
	rows := 1
	for rows < most {
		if one, _ := p.cost(rows); one*float64(most) <= 2*all*float64(rows) {
			break
		}
		rows += 1 + rows/4
	}
	return min(rows, most)
}

// planned is the share of the time for prompts that promptRows fills: a layer that takes a little
// longer than expected must not keep the one after it from its turn.
const planned = 0.9

// mostLayers is the most layers of a prompt step that promptRows plans for between two decode
// steps: of more, the rest that does not fill a layer is small.
const mostLayers = 8

// within returns the most rows whose layer takes at most ns, at least 1.
func (p *pace) within(ns float64, most int) int {
	lo, hi := 1, most
	for lo < hi {
		mid := (lo + hi + 1) / 2
		if one, off := p.cost(mid); one+min(off, one/8) <= ns {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	return lo
}

// recent reports whether a sequence has decoded so lately that it may well go on.
func (p *pace) recent() bool {
	alone, _, _ := p.decode(1)
	return p.ended > 0 && float64(p.now-p.ended) <= recentSteps*alone
}

// recentSteps is how many decode steps after the last one a sequence may still be expected.
const recentSteps = 20

// begin notes that n layers of a step have begun.
func (p *pace) begin(s *running, n int) {
	if s.kind == Prompt {
		if p.underWay() == 0 {
			p.last = p.now
		}
		p.given += n
		for i := range p.steps {
			if d := &p.steps[i]; d.kind == Decode {
				d.company = true
			}
		}
	} else if s.begun == 0 {
		if s.free = p.now; !p.preempts {
			free, _ := p.expected()
			s.free = int64(free)
		}
		s.company = p.count(Prompt) > 0
	}
	s.begun += n
}

// underWay returns how many layers of prompt steps have begun and not retired.
func (p *pace) underWay() (n int) {
	for i := range p.steps {
		if s := &p.steps[i]; s.kind == Prompt {
			n += s.begun - s.retired
		}
	}
	return n
}

// retire notes that n layers of a step are done.
func (p *pace) retire(s *running, n int) {
	s.retired += n
	if s.kind == Prompt {
		if p.now > 0 && s.measured {
			p.layer.add(s.rows, (p.now-p.last)/int64(n))
		}
		p.last = p.now
	}
}

// end notes that a step is over.
func (p *pace) end(s *running) {
	if s.kind == Decode && s.begun > 0 {
		done := p.now
		if s.done > 0 {
			done = s.done
			p.pay(s)
		}
		p.ended = p.now
		if p.underWay() <= p.given { // what is under way of prompts began after this step
			p.last = p.now
		}
		if took := done - s.free; p.now > 0 && s.measured {
			if s.company {
				p.beside.add(s.rows, took)
			} else {
				p.alone.add(s.rows, took)
			}
		}
	}
	for i := range p.steps {
		if p.steps[i].id == s.id {
			p.steps = append(p.steps[:i], p.steps[i+1:]...)
			return
		}
	}
}
