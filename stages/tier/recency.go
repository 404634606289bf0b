package tier

// recency decides which record makes room for another expert: the least recently used of those that
// nobody uses. All other code asks it and knows nothing of the order.
type recency struct {
	// head of the ring of records that hold an expert, or are being filled with one; next is the
	// most recently used
	head record
}

func (o *recency) init() { o.head.prev, o.head.next = &o.head, &o.head }

// touch notes a use of a record.
func (o *recency) touch(r *record) {
	o.drop(r)
	r.prev, r.next = &o.head, o.head.next
	r.prev.next, r.next.prev = r, r
}

// drop notes that a record holds no expert any more.
func (o *recency) drop(r *record) {
	if r.next != nil {
		r.prev.next, r.next.prev = r.next, r.prev
		r.prev, r.next = nil, nil
	}
}

// victim returns the record that makes room, or nil if all are in use.
func (o *recency) victim() *record {
	for r := o.head.prev; r != &o.head; r = r.prev {
		if r.users == 0 {
			return r
		}
	}
	return nil
}

// unused calls f for each record that nobody uses, least recently used first. f may drop it.
func (o *recency) unused(f func(*record)) {
	for r := o.head.prev; r != &o.head; {
		prev := r.prev
		if r.users == 0 {
			f(r)
		}
		r = prev
	}
}
