package gpu

import "math"

// Pages lists where the pages of a sequence lie, in the order of its positions. It is a value, like
// a slice: what Append returns may share memory with what it was given, and neither changes. It
// remembers what is known of its pages, so that an operation looks at those that are new and not at
// all of a long text.
type Pages struct {
	list []pageEntry
	line *pagesLine
}

// pageEntry is a page. least is the smallest room from a page's beginning to its buffer's end, of
// the pages up to this one; offsets are their offsets, or'ed.
type pageEntry struct {
	view           View
	least, offsets int
}

// pagesLine is what lists have in common of which the longer begins with the shorter.
type pagesLine struct{ n int } // of the longest

// PagesOf returns the list of some pages.
func PagesOf(pages ...View) Pages { return Pages{}.Append(pages...) }

// Len returns the number of pages.
func (p Pages) Len() int { return len(p.list) }

// At returns page i.
func (p Pages) At(i int) View { return p.list[i].view }

// Append returns the list with more pages at its end.
func (p Pages) Append(pages ...View) Pages {
	if p.line == nil || p.line.n != len(p.list) { // another list has gone on from here
		p.line = &pagesLine{}
		p.list = p.list[:len(p.list):len(p.list)]
	}
	for _, v := range pages {
		e := pageEntry{view: v, least: -1, offsets: v.Offset}
		if v.Buf != nil {
			e.least = v.Buf.Len() - v.Offset
		}
		if n := len(p.list); n > 0 {
			e.least, e.offsets = min(e.least, p.list[n-1].least), e.offsets|p.list[n-1].offsets
		}
		p.list = append(p.list, e)
	}
	p.line.n = len(p.list)
	return p
}

// First returns the first n pages.
func (p Pages) First(n int) Pages {
	if n < len(p.list) {
		p.list = p.list[:n]
	}
	return p
}

// Line identifies the list: of two with equal lines, the longer begins with the shorter. It is nil
// for a list without pages.
func (p Pages) Line() any { return p.line }

// fit reports whether each of the first n pages is known to have size bytes, at a multiple of 4.
func (p Pages) fit(n, size int) bool {
	if n == 0 {
		return true
	}
	e := &p.list[n-1]
	return e.offsets >= 0 && e.offsets%4 == 0 && size < math.MaxInt && e.least >= size
}
