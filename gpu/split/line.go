package split

import "github.com/moeflux/moeflux-actor/gpu"

// line is the queue of a part, and what it is to be given when that has what it needs.
type line struct {
	queue   gpu.Queue
	reports reports
	held    []*held // oldest first

	// The queue's mu guards the rest.
	order         []*ticket // submitted and not told to be done, oldest first
	entered, told uint64    // how many ever were
}

// submit gives the part commands.
func (l *line) submit(c *gpu.Commands, p purpose) (gpu.Ticket, error) {
	urgent := c.Urgent
	l.reports.add(urgent, p) // the part may begin before its queue returns
	t, err := l.queue.Submit(c)
	if err != nil {
		l.reports.takeBack(urgent)
	}
	return t, err
}

// held is work that a part has not been given yet.
type held struct {
	commands *gpu.Commands
	end      func(error)
	t        *ticket   // nil for the downloads of a transfer
	x        *transfer // what has to come first; nil: nothing
	ready    bool
	err      error // why it has not come
}

// given is work that a part was given, or, without a ticket, could not be given.
type given struct {
	ticket gpu.Ticket
	end    func(error)
	err    error
}

// attach has those who gave work hear of its end. It may call them at once, so no lock is held.
func (q *queue) attach(all []given) {
	if all == nil {
		return
	}
	for _, g := range all {
		if g.ticket == nil {
			g.end(g.err)
		} else {
			g.ticket.OnDone(g.end)
		}
	}
	clear(all)
	q.giving.Lock()
	defer q.giving.Unlock()
	q.spareLists = append(q.spareLists, all[:0])
}

// list returns an empty list of what is given, in memory that attach has used. The caller holds
// giving.
func (q *queue) list() []given {
	n := len(q.spareLists) - 1
	if n < 0 {
		return nil
	}
	l := q.spareLists[n]
	q.spareLists = q.spareLists[:n]
	return l
}

// transfer takes moves through host memory.
type transfer struct {
	out, in gpu.Commands // downloads and uploads
	memory  []byte
	h       *held   // that waits for it; nil when it has been given
	t       *ticket // of that

	downloaded, uploaded func(error)
}

// hold adds the work of a ticket to its part's line, with the transfer that it needs, and returns
// what was given meanwhile. The caller holds giving.
func (q *queue) hold(t *ticket) []given {
	c := t.Of.commands
	h := q.heldFor(c, t.Of.end)
	h.t, h.ready = t, len(c.Moves) == 0
	l := q.lines[c.Part]
	l.held = append(l.held, h)
	if h.ready {
		return nil
	}
	h.x = q.transfer(h)
	from, down := q.lines[c.Part-1], q.heldFor(&h.x.out, h.x.downloaded)
	down.ready = true
	from.held = append(from.held, down)
	return q.flush(from, q.list())
}

// heldFor returns work in the memory of some that was given, if possible.
func (q *queue) heldFor(c *gpu.Commands, end func(error)) *held {
	var h *held
	if n := len(q.spareHeld) - 1; n >= 0 {
		h, q.spareHeld = q.spareHeld[n], q.spareHeld[:n]
	}
	if h == nil {
		h = new(held)
	}
	*h = held{commands: c, end: end}
	return h
}

// transfer returns a transfer of what h needs.
func (q *queue) transfer(h *held) *transfer {
	var x *transfer
	q.mu.Lock()
	if n := len(q.spareTransfers); n > 0 {
		x, q.spareTransfers = q.spareTransfers[n-1], q.spareTransfers[:n-1]
	}
	q.mu.Unlock()
	if x == nil {
		x = new(transfer)
		x.downloaded = func(err error) { q.arrived(x, err) }
		x.uploaded = func(err error) { q.transferred(x, err) }
	}
	x.h, x.t = h, h.t
	total := 0
	for _, m := range h.commands.Moves {
		total += m.Bytes
	}
	if len(x.memory) < total {
		x.memory = make([]byte, total)
	}
	at := 0
	x.out.Urgent, x.out.Part, x.in.Urgent, x.in.Part = h.commands.Urgent, h.commands.Part-1, h.commands.Urgent, h.commands.Part
	for _, m := range h.commands.Moves {
		part := x.memory[at : at+m.Bytes : at+m.Bytes]
		gpu.Encode(&x.out, gpu.Download{Src: m.Src, Dst: part})
		gpu.Encode(&x.in, gpu.Upload{Dst: m.Dst, Src: part})
		at += m.Bytes
	}
	return x
}

// flush gives a part what is ready, in order, and adds it to all. The caller holds giving.
func (q *queue) flush(l *line, all []given) []given {
	n := 0
	for ; n < len(l.held) && l.held[n].ready; n++ {
		all = q.submit(l, l.held[n], all)
		q.spareHeld = append(q.spareHeld, l.held[n])
	}
	rest := copy(l.held, l.held[n:])
	clear(l.held[rest:])
	l.held = l.held[:rest]
	return all
}

// submit gives a part work that was held back, and what has to come first.
func (q *queue) submit(l *line, h *held, all []given) []given {
	if h.x != nil && h.err == nil {
		t, err := l.submit(&h.x.in, uploading)
		if h.err = err; err == nil {
			all = append(all, given{ticket: t, end: h.x.uploaded})
		}
	}
	is := computing
	if h.t == nil {
		is = downloading
	}
	var t gpu.Ticket
	if h.err == nil {
		t, h.err = l.submit(h.commands, is)
	}
	if h.err != nil {
		if is == computing {
			l.reports.add(h.commands.Urgent, refused)
		}
		return append(all, given{end: h.end, err: h.err})
	}
	if h.t != nil {
		h.t.Of.part = t
	}
	return append(all, given{ticket: t, end: h.end})
}

// arrived notes that the downloads of a transfer are done, or have failed.
func (q *queue) arrived(x *transfer, err error) {
	q.giving.Lock()
	x.h.ready, x.h.err = true, err
	x.h = nil
	all := q.flush(q.lines[x.in.Part], q.list())
	q.giving.Unlock()
	q.attach(all)
}

// transferred notes that the uploads of a transfer are done. Its memory is used again.
func (q *queue) transferred(x *transfer, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	x.t.Of.err = err
	x.out.Reset()
	x.in.Reset()
	x.t = nil
	q.spareTransfers = append(q.spareTransfers, x)
}
