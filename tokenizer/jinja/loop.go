package jinja

// loopContext is the variable loop inside a for loop.
type loopContext struct {
	over    Value // for its length
	it      iterator
	index0  int
	depth0  int
	length  int   // -1 until asked for
	before  Value // missing outside of the items
	current Value
	after   Value // missing unless looked ahead
	// the last arguments of changed, or missing
	changed Value
	// runs a recursive loop on something else; may be nil
	again func(r *run, over Value, depth0 int) (Value, error)
}

func (s *forStmt) exec(r *run, sc *scope, out *buffer) (flow, error) {
	over, err := r.value(s.iter, sc)
	if err != nil {
		return flowNext, err
	}
	if !s.recursive {
		return s.loop(r, sc, over, 0, nil, out)
	}
	var again func(r *run, over Value, depth0 int) (Value, error)
	again = func(r *run, over Value, depth0 int) (Value, error) {
		inner := &buffer{run: r}
		_, err := s.loop(r, sc, over, depth0, again, inner)
		return inner.String(), err
	}
	text, err := again(r, over, 0)
	if err != nil {
		return flowNext, err
	}
	return flowNext, out.write(text.(string))
}

// loop runs the loop over one value.
func (s *forStmt) loop(r *run, sc *scope, over Value, depth0 int, again func(*run, Value, int) (Value, error), out *buffer) (flow, error) {
	it, err := r.iter(over)
	if err != nil {
		return flowNext, err
	}
	if s.filter != nil {
		it = &loopFilter{s, sc, it}
		over = missing
	}
	lc := &loopContext{over: over, it: it, index0: -1, depth0: depth0, length: -1,
		before: missing, current: missing, after: missing, changed: missing, again: again}
	whole := false // an iteration came to its end: as in the reference, else depends on this
	for {
		item, ok, err := lc.advance(r)
		if err != nil {
			return flowNext, err
		}
		if !ok {
			break
		}
		inner := sc.inner()
		inner.set("loop", lc)
		if err := r.assign(inner, s.to, item); err != nil {
			return flowNext, err
		}
		f, err := r.exec(s.body, inner, out)
		if err != nil {
			return flowNext, err
		}
		if f == flowBreak {
			break
		}
		whole = whole || f == flowNext
	}
	if whole || s.other == nil {
		return flowNext, nil
	}
	return r.exec(s.other, sc.inner(), out)
}

// loopFilter leaves out the items for which the loop's condition is false. It is asked for each
// only when its turn comes, so that the condition sees what the body did.
type loopFilter struct {
	s  *forStmt
	sc *scope
	it iterator
}

func (f *loopFilter) next(r *run) (Value, bool, error) {
	for {
		item, ok, err := f.it.next(r)
		if !ok || err != nil {
			return nil, false, err
		}
		inner := f.sc.inner()
		if err := r.assign(inner, f.s.to, item); err != nil {
			return nil, false, err
		}
		v, err := r.value(f.s.filter, inner)
		if err != nil {
			return nil, false, err
		}
		if truth(v) {
			return item, true, nil
		}
	}
}

// advance goes on to the next item.
func (l *loopContext) advance(r *run) (Value, bool, error) {
	item, err := l.peek(r)
	if err != nil || item == missing {
		return nil, false, err
	}
	l.after = missing
	l.index0++
	l.before, l.current = l.current, item
	return item, true, nil
}

// peek is the next item, or missing.
func (l *loopContext) peek(r *run) (Value, error) {
	if l.after != missing {
		return l.after, nil
	}
	item, ok, err := l.it.next(r)
	if err != nil {
		return nil, err
	}
	if ok {
		l.after = item
	}
	return l.after, nil
}

// count is the number of items. Of what has no length the rest is read ahead.
func (l *loopContext) count(r *run) (int, error) {
	if l.length >= 0 {
		return l.length, nil
	}
	n, ok := length(l.over)
	if !ok {
		rest, err := r.drain(l.it)
		if err != nil {
			return 0, err
		}
		l.it = &sliceIter{items: rest}
		n = len(rest) + l.index0 + 1
		if l.after != missing {
			n++
		}
	}
	l.length = n
	return n, nil
}

// attr is an attribute of loop.
func (l *loopContext) attr(r *run, name string) (Value, bool, error) {
	switch name {
	case "index0":
		return int64(l.index0), true, nil
	case "index":
		return int64(l.index0 + 1), true, nil
	case "first":
		return l.index0 == 0, true, nil
	case "depth":
		return int64(l.depth0 + 1), true, nil
	case "depth0":
		return int64(l.depth0), true, nil
	case "length", "revindex", "revindex0":
		n, err := l.count(r)
		switch name {
		case "revindex":
			n -= l.index0
		case "revindex0":
			n -= l.index0 + 1
		}
		return int64(n), true, err
	case "last":
		item, err := l.peek(r)
		return item == missing, true, err
	case "nextitem":
		item, err := l.peek(r)
		if item == missing {
			item = undefinedHint("there is no next item")
		}
		return item, true, err
	case "previtem":
		if l.index0 == 0 {
			return undefinedHint("there is no previous item"), true, nil
		}
		return l.before, true, nil
	case "cycle":
		return &method{l, name, (*run).loopCycle}, true, nil
	case "changed":
		return &method{l, name, (*run).loopChanged}, true, nil
	}
	return nil, false, nil
}

func (r *run) loopCycle(recv Value, a arguments) (Value, error) {
	if len(a.pos) == 0 {
		return nil, typeErr("no items for cycling given")
	}
	return a.pos[recv.(*loopContext).index0%len(a.pos)], nil
}

func (r *run) loopChanged(recv Value, a arguments) (Value, error) {
	l := recv.(*loopContext)
	now := &Tuple{items: a.pos}
	if l.changed != missing {
		same, err := r.equal(l.changed, now)
		if same || err != nil {
			return false, err
		}
	}
	l.changed = now
	return true, nil
}
