package recall

import (
	"maps"
	"slices"
	"time"

	"github.com/moeflux/moeflux-actor/snapshot"
)

// place is whose texts are side by side: those of one scope, of engines that compute the same bits.
type place struct {
	identity snapshot.Fingerprint
	scope    string // hashed
}

// stretch is a run of positions of a text; that at the root of a place has none.
type stretch struct {
	file
	in       place
	parent   *stretch // that it goes on from, at position from
	from     int
	tokens   []int32
	children []*stretch
	tips     []*tip
}

// tip is the recurrent state at a position of a stretch.
type tip struct {
	file
	of *stretch
	at int
}

// file is what is known of a file.
type file struct {
	name  string
	bytes int64
	used  time.Time
}

// index is all files of a folder.
type index struct {
	roots     map[place]*stretch
	stretches map[string]*stretch // by name
	tips      map[string]*tip
	strays    map[string]*file // of no use: damaged, or what they go on from is gone
	bytes     int64            // of all
}

func newIndex() index {
	return index{roots: map[place]*stretch{}, stretches: map[string]*stretch{}, tips: map[string]*tip{}, strays: map[string]*file{}}
}

// knows reports whether there is a file of a name.
func (x *index) knows(name string) bool {
	return x.stretches[name] != nil || x.tips[name] != nil || x.strays[name] != nil
}

// names returns those of all files.
func (x *index) names() []string {
	return slices.Concat(slices.Collect(maps.Keys(x.stretches)), slices.Collect(maps.Keys(x.tips)), slices.Collect(maps.Keys(x.strays)))
}

// root returns where the texts of a place begin.
func (x *index) root(in place) *stretch {
	if x.roots[in] == nil {
		x.roots[in] = &stretch{in: in}
	}
	return x.roots[in]
}

// add adds a file, of which its note says where it belongs.
func (x *index) add(f file, in place, tokens []int32, n note) {
	x.bytes += f.bytes
	after := x.stretches[n.After]
	if n.After == "" && n.At == 0 {
		after = x.root(in)
	}
	of := x.stretches[n.Of]
	switch {
	case n.Of == "" && len(tokens) > 0 && after.goesOn(in, n.At):
		s := &stretch{file: f, in: in, parent: after, from: n.At, tokens: tokens}
		after.children = append(after.children, s)
		x.stretches[f.name] = s
	case n.Of != "" && of.goesOn(in, n.At):
		t := &tip{file: f, of: of, at: n.At}
		of.tips = append(of.tips, t)
		x.tips[f.name] = t
	default:
		x.strays[f.name] = &f
	}
}

// goesOn reports whether something of a place can go on from a position of a stretch.
func (s *stretch) goesOn(in place, at int) bool {
	return s != nil && s.in == in && at <= s.to() && (at > s.from || s.parent == nil)
}

// drop forgets a file that is gone. What goes on from it is of no use any more.
func (x *index) drop(name string) {
	switch s, t, f := x.stretches[name], x.tips[name], x.strays[name]; {
	case s != nil:
		x.stray(s)
		x.drop(name)
	case t != nil:
		t.of.tips = slices.DeleteFunc(t.of.tips, func(other *tip) bool { return other == t })
		delete(x.tips, name)
		x.bytes -= t.bytes
	case f != nil:
		delete(x.strays, name)
		x.bytes -= f.bytes
	}
}

// stray makes a stretch, and all that goes on from it, files of no use.
func (x *index) stray(s *stretch) {
	for _, c := range slices.Clone(s.children) {
		x.stray(c)
	}
	for _, t := range s.tips {
		delete(x.tips, t.name)
		x.strays[t.name] = &t.file
	}
	s.parent.children = slices.DeleteFunc(s.parent.children, func(other *stretch) bool { return other == s })
	if p := s.parent; p.parent == nil && len(p.children) == 0 {
		delete(x.roots, p.in)
	}
	delete(x.stretches, s.name)
	x.strays[s.name] = &s.file
}

// to returns the position after the last one.
func (s *stretch) to() int { return s.from + len(s.tokens) }

// tip returns the tip at a position, or nil.
func (s *stretch) tip(at int) *tip {
	if i := slices.IndexFunc(s.tips, func(t *tip) bool { return t.at == at }); i >= 0 {
		return s.tips[i]
	}
	return nil
}

// within reports whether other is s, or one that s goes on from.
func (s *stretch) within(other *stretch) bool {
	for at := other; at != nil; at = at.parent {
		if at == s {
			return true
		}
	}
	return false
}

// follow visits all stretches that have something of a text, with the position up to which it and
// the stretches before it are that text. The text up to where s begins must be so.
func (s *stretch) follow(text []int32, visit func(s *stretch, upTo int)) {
	upTo := s.from + common(s.tokens, text[s.from:])
	visit(s, upTo)
	for _, c := range s.children {
		if c.from <= upTo && c.from < len(text) && c.tokens[0] == text[c.from] {
			c.follow(text, visit)
		}
	}
}

// covered returns how many positions of a text there are rows of, and the stretch with the last
// one.
func (s *stretch) covered(text []int32) (last *stretch, upTo int) {
	last = s
	s.follow(text, func(s *stretch, n int) {
		if n > upTo {
			last, upTo = s, n
		}
	})
	return last, upTo
}

// tipped returns the last tip of a text, nil if there is none.
func (s *stretch) tipped(text []int32) (last *tip) {
	s.follow(text, func(s *stretch, n int) {
		for _, t := range s.tips {
			if t.at <= n && (last == nil || t.at > last.at) {
				last = t
			}
		}
	})
	return last
}

// span is the positions that a state takes from a stretch: from its beginning up to one.
type span struct {
	*stretch
	upTo int
}

// chain returns the spans of all positions up to one of a stretch, in their order.
func (s *stretch) chain(upTo int) (all []span) {
	for at := s; at.parent != nil; at = at.parent {
		all = append(all, span{at, upTo})
		upTo = at.from
	}
	slices.Reverse(all)
	return all
}

func common(a, b []int32) (n int) {
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}
