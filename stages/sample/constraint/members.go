package constraint

// members are the members of a JSON object, or the items of an array that is written like one:
// those of list in order, of which the ones that are not required may be left out, and then others.
type members struct {
	list     []member
	rest     *expr // one of the others: name, colon and value; nil for none
	min, max int   // how many there are; of the others, one counts for the least
	comma    *expr

	open, close string // brackets
}

type member struct {
	pair     *expr // name, colon and value
	required bool
}

// members adds an object. The nodes form a grid: which of the list comes next, and how many have
// been written, as far as that matters.
func (b *builder) members(m *members, from, to int32) {
	if m.max < m.min {
		return
	}
	most := max(m.min, 1)
	if m.max != unbounded {
		most = m.max
	}
	row := b.row(most)
	b.link(text(m.open), from, row[0])
	for _, x := range m.list {
		next := b.row(most)
		if b.large {
			return
		}
		b.pairs(m, x.pair, 0, row, next)
		for c := range row {
			if !x.required {
				b.eps(row[c], next[c])
			}
		}
		row = next
	}
	for _, at := range row[m.min:] {
		b.link(text(m.close), at, to)
	}
	if m.rest != nil {
		b.others(m, row, to)
	}
}

// others adds the members that are not of the list. The first must be enough for the least number.
func (b *builder) others(m *members, row []int32, to int32) {
	least := max(0, m.min-1)
	next := b.row(len(row) - 1)
	b.pairs(m, m.rest, least, row, next)
	b.pairs(m, m.rest, least, next, next)
	for _, at := range next {
		b.link(text(m.close), at, to)
	}
}

// row returns nodes for each number of members up to most.
func (b *builder) row(most int) []int32 {
	if most >= b.most {
		b.large, most = true, 0
	}
	row := make([]int32, most+1)
	for c := range row {
		row[c] = b.node()
	}
	return row
}

// pairs adds one more member where at least some have been written, with a comma if it is not the
// first.
func (b *builder) pairs(m *members, pair *expr, least int, from, to []int32) {
	most := len(from) - 1
	begin := map[int32]int32{} // the node that follows the member to the one that precedes it
	for c := least; c <= most; c++ {
		if b.large || c == most && m.max != unbounded {
			return
		}
		target := to[min(c+1, most)]
		first, ok := begin[target]
		if !ok {
			first = b.node()
			b.link(pair, first, target)
			begin[target] = first
		}
		if c == 0 {
			b.eps(from[c], first)
		} else {
			b.link(m.comma, from[c], first)
		}
	}
}
