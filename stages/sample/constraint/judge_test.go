package constraint

import (
	"errors"
	"math"
	"math/bits"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
)

// drawer writes texts as a model at temperature 1 whose logits are random.
type drawer struct {
	t    testing.TB
	v    *Vocabulary
	rng  *rand.Rand
	lean []float64 // by token: whether it closes more than it opens
	byte [256]int32
}

func newDrawer(t testing.TB, v *Vocabulary, rng *rand.Rand) *drawer {
	d := &drawer{t: t, v: v, rng: rng, lean: make([]float64, v.Size())}
	for id, token := range v.tokens {
		if len(token) == 1 {
			d.byte[token[0]] = int32(id)
		}
		for _, b := range token {
			lean := -1.0
			switch {
			case string(token) == `"`:
				lean = 4
			case strings.IndexByte(`}]"`, b) >= 0:
				lean = 1.5
			case b == ',':
				lean = -0.5
			case strings.IndexByte(`{[.e\`, b) >= 0:
				lean = -2
			}
			d.lean[id] += lean / float64(len(token))
		}
	}
	for _, id := range v.ends {
		d.lean[id] = 6
	}
	return d
}

// text draws one text.
func (d *drawer) text(g *Grammar) string {
	d.t.Helper()
	text, ended := d.upTo(g, 20_000) // with the lean none comes near
	if !ended {
		d.t.Fatalf("%.300q does not end", text)
	}
	return text
}

// upTo draws a text of at most some tokens, and tells whether it ended. So that texts end, the
// longer it is the more likely are tokens that close something; but the choice is always among
// those that the mask allows.
func (d *drawer) upTo(g *Grammar, most int) (string, bool) {
	d.t.Helper()
	s := g.Start(d.v)
	var text []byte
	var open stringOpen
	for n := range most {
		mask := s.Mask()
		if n%16 == 3 {
			d.compare(s, mask, text)
		}
		id := d.choose(mask, min(5, max(0, float64(n-10)/20)))
		if open.long() && !open.escaped {
			id = d.byte[d.closing(s.at)]
		}
		if id < 0 {
			d.t.Fatalf("after %q nothing is allowed", text)
		}
		if err := s.Advance(id); err != nil {
			d.t.Fatalf("after %q: %v", text, err)
		}
		if d.v.isEnd(id) {
			return string(text), true
		}
		text = append(text, d.v.tokens[id]...)
		open.follow(d.v.tokens[id])
	}
	return string(text), false
}

// stringOpen follows whether a JSON text is within a string, and since when.
type stringOpen struct {
	in, escaped bool
	bytes       int
}

func (o *stringOpen) follow(token []byte) {
	for _, b := range token {
		switch {
		case o.escaped:
			o.escaped = false
		case b == '\\':
			o.escaped = o.in
		case b == '"':
			o.in, o.bytes = !o.in, 0
		}
		o.bytes++
	}
}

// long reports whether chance is unlikely to end the string, as where it must end with a word.
func (o *stringOpen) long() bool { return o.in && o.bytes > 200 }

// closing returns the first byte on the shortest way to a place where a quotation mark may come.
func (d *drawer) closing(at *place) byte {
	d.t.Helper()
	type way struct {
		at      *place
		first   byte
		escaped bool // a backslash has come
	}
	seen, queue := map[*place]bool{at: true}, []way{{at: at}}
	for i := 0; i < len(queue) && i < 100_000; i++ {
		w := queue[i]
		if !w.escaped && w.at.after('"') != nowhere {
			if i == 0 {
				return '"'
			}
			return w.first
		}
		for b := range 256 {
			next := w.at.after(byte(b))
			if next == nowhere || seen[next] {
				continue
			}
			seen[next] = true
			if i == 0 {
				w.first = byte(b)
			}
			queue = append(queue, way{next, w.first, !w.escaped && b == '\\'})
		}
	}
	d.t.Fatalf("nothing closes the string")
	return 0
}

// choose draws one token of a mask, -1 if it has none. What is the largest of logits with Gumbel
// noise is drawn by their softmax.
func (d *drawer) choose(mask []uint64, pressure float64) int32 {
	best, at := math.Inf(-1), int32(-1)
	for w, word := range mask {
		for ; word != 0; word &= word - 1 {
			id := int32(64*w + bits.TrailingZeros64(word))
			logit := 2*d.rng.NormFloat64() + pressure*d.lean[id]
			if x := logit - math.Log(d.rng.ExpFloat64()); x > best {
				best, at = x, id
			}
		}
	}
	return at
}

// compare checks a mask against Accepts, for some tokens.
func (d *drawer) compare(s *State, mask []uint64, text []byte) {
	d.t.Helper()
	for range 50 {
		id := int32(d.rng.IntN(d.v.Size()))
		if ok := mask[id/64]>>(id%64)&1 == 1; ok != s.Accepts(id) {
			d.t.Fatalf("after %q: token %q: mask says %v, Accepts the opposite", text, d.v.tokens[id], ok)
		}
	}
}

// demoVocabulary is the one of the demo model, and an end.
func demoVocabulary(t testing.TB) *Vocabulary {
	t.Helper()
	tokens := byteLevelTokens(t, "../../../internal/demo/files/tokenizer.json")
	return NewVocabulary(tokens, []int32{int32(len(tokens) - 1)})
}

// spellings returns how a JSON text may be written as constraints write it: compact, in every order
// of the members of its objects, numbers without exponent or needless digits. The list is cut at
// some most, which it tells.
func spellings(t testing.TB, text string, most int) (list []string, all bool) {
	t.Helper()
	v, err := parseJSON([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	s := speller{most: most, all: true}
	return s.of(v), s.all
}

type speller struct {
	most int
	all  bool
}

func (s *speller) of(v *value) []string {
	switch v.kind {
	case kindString:
		return []string{quote(v.text)}
	case kindNumber:
		d, err := parseDecimal(v)
		if errors.As(err, new(*LimitError)) {
			return []string{v.text}
		}
		return []string{d.plain()}
	case kindArray:
		parts := make([][]string, len(v.items))
		for i, item := range v.items {
			parts[i] = s.of(item)
		}
		return s.around("[", s.join(parts), "]")
	case kindObject:
		var list []string
		members := map[string][]string{}
		for _, name := range v.names {
			members[name] = s.around(quote(name)+":", s.of(v.member[name]), "")
		}
		for order := range permutations(v.names) {
			parts := make([][]string, len(order))
			for i, name := range order {
				parts[i] = members[name]
			}
			if list = append(list, s.join(parts)...); len(list) >= s.most {
				s.all = false
				break
			}
		}
		return s.around("{", list, "}")
	}
	return []string{string(v.kind)}
}

// plain returns the number in digits, without an exponent.
func (d decimal) plain() string {
	text := d.whole
	if d.fraction != "" {
		text += "." + d.fraction
	}
	if d.negative {
		text = "-" + text
	}
	return text
}

func (s *speller) around(before string, list []string, after string) []string {
	var out []string
	for _, x := range list {
		out = append(out, before+x+after)
	}
	return out
}

// join returns the combinations of one of each part, with commas between them.
func (s *speller) join(parts [][]string) []string {
	list := []string{""}
	for i, part := range parts {
		var next []string
		for _, x := range list {
			for _, y := range part {
				if i > 0 {
					y = "," + y
				}
				if next = append(next, x+y); len(next) >= s.most {
					s.all = false
					break
				}
			}
		}
		list = next[:min(len(next), s.most)]
	}
	return list
}

// permutations yields a list in every order, first as it is.
func permutations(list []string) func(func([]string) bool) {
	return func(yield func([]string) bool) {
		now := slices.Clone(list)
		var from func(i int) bool
		from = func(i int) bool {
			if i >= len(now)-1 {
				return yield(slices.Clone(now))
			}
			for j := i; j < len(now); j++ {
				now[i], now[j] = now[j], now[i]
				if !from(i + 1) {
					return false
				}
				now[i], now[j] = now[j], now[i]
			}
			return true
		}
		from(0)
	}
}

// matchesSome reports whether one spelling of a JSON text is of a grammar.
func matchesSome(g *Grammar, list []string) (spelling string, ok bool) {
	i := slices.IndexFunc(list, g.Matches)
	if i < 0 {
		return "", false
	}
	return list[i], true
}

func readTestdata(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
