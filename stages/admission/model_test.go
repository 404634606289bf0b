package admission_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/testenv"
	"github.com/moeflux/moeflux-actor/stages/admission"
)

// model is the queue as its documentation has it, with one list of everything and no thought of
// speed.
type model struct {
	most     int
	asks     []*modelAsk // in order of arrival
	accounts map[account]*books
	clocks   map[int]*clock
	nextAsk  int
}

type account struct {
	class int
	key   string
}

// books are what an account had, in pieces by its weight: one piece is a token for a weight of
// pieces, and what is less waits for the next token.
type books struct{ served, rest, promised, weight, open int }

// clock is a class's: a piece served for each of the weights that are active moves it by one.
type clock struct{ now, pot, most int }

// pieces of a token; package fair has as many.
const pieces = 1 << 16

// weigh gives a key its weight.
func (m *model) weigh(a account, weight int) { m.accounts[a].weight = weight }

// weights returns the sum of those of the accounts that are active.
func (m *model) weights(class int) (n int) {
	for a, b := range m.accounts {
		if a.class == class && b.open > 0 {
			n += b.weight
		}
	}
	return n
}

type modelAsk struct {
	of   account
	grow bool
	name int
}

func (m *model) active(class int) (n int) {
	for a, b := range m.accounts {
		if a.class == class && b.open > 0 {
			n++
		}
	}
	return n
}

func (m *model) open(a account) {
	b := m.accounts[a]
	if now := m.clocks[a.class].now; b.open == 0 && b.served <= now {
		b.served, b.rest = now, 0
	}
	b.open++
}

func (m *model) close(a account) {
	m.accounts[a].open--
	if c := m.clocks[a.class]; m.active(a.class) == 0 {
		c.now, c.pot = max(c.now, c.most), 0
	}
}

func (m *model) serve(a account, n int) {
	b, c := m.accounts[a], m.clocks[a.class]
	b.promised -= n
	for range n {
		b.rest += pieces
		b.served, b.rest = b.served+b.rest/b.weight, b.rest%b.weight
		c.most = max(c.most, b.served)
		c.pot += pieces
		w := m.weights(a.class)
		c.now, c.pot = c.now+c.pot/w, c.pot%w
	}
}

// add returns the name of the ask that has to go, or 0.
func (m *model) add(a account, grow bool) (added, refused int) {
	m.nextAsk++
	m.open(a)
	m.asks = append(m.asks, &modelAsk{a, grow, m.nextAsk})
	lines := make(map[account]int)
	fresh, lowest := 0, 99
	for _, x := range m.asks {
		if !x.grow {
			fresh++
			lines[x.of]++
			lowest = min(lowest, x.of.class)
		}
	}
	if grow || fresh <= m.most {
		return m.nextAsk, 0
	}
	longest := 0.0
	length := func(a account) float64 { return float64(lines[a]) / float64(m.accounts[a].weight) }
	for of := range lines {
		if of.class == lowest {
			longest = max(longest, length(of))
		}
	}
	for i, x := range slices.Backward(m.asks) { // the newest one that ends such a line
		if !x.grow && x.of.class == lowest && length(x.of) == longest {
			m.asks = slices.Delete(m.asks, i, i+1)
			m.close(x.of)
			return m.nextAsk, x.name
		}
	}
	panic("nobody to refuse")
}

func (m *model) head() *modelAsk {
	if len(m.asks) == 0 {
		return nil
	}
	had := func(a *modelAsk) int {
		b := m.accounts[a.of]
		return b.served + (b.rest+b.promised*pieces)/b.weight
	}
	grow := func(a *modelAsk) int {
		if a.grow {
			return 0
		}
		return 1
	}
	return slices.MinFunc(m.asks, func(a, b *modelAsk) int {
		return cmp.Or(cmp.Compare(b.of.class, a.of.class), cmp.Compare(grow(a), grow(b)), cmp.Compare(had(a), had(b)), cmp.Compare(a.name, b.name))
	})
}

func (m *model) drop(name int) {
	i := slices.IndexFunc(m.asks, func(a *modelAsk) bool { return a.name == name })
	a := m.asks[i]
	m.asks = slices.Delete(m.asks, i, i+1)
	m.close(a.of)
}

// grant is an open one of the test.
type grant struct {
	of    account
	share *admission.Share[int]
	left  int
}

// TestModel compares the queue with the model over random lives.
func TestModel(t *testing.T) {
	for seed := range uint64(testenv.Rounds(30, 200, 2000)) {
		if err := compare(rand.New(rand.NewPCG(seed, 1))); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

func compare(r *rand.Rand) error {
	const classes, keys = 3, 4
	m := &model{most: 1 + r.IntN(8), accounts: make(map[account]*books), clocks: make(map[int]*clock)}
	q := admission.New[int](classes, m.most)
	shares := make(map[account]*admission.Share[int])
	for c := range classes {
		m.clocks[c] = new(clock)
		for k := range keys {
			a := account{c, fmt.Sprint(k)}
			m.accounts[a], shares[a] = &books{weight: 1}, q.Join(c, a.key, 1)
		}
	}
	handles := make(map[int]*admission.Ask[int])
	var grants []*grant
	for range 400 {
		a := account{r.IntN(classes), fmt.Sprint(r.IntN(keys))}
		if r.IntN(3) > 0 {
			a.class = 1
		}
		if r.IntN(20) == 0 { // somebody gives the key another weight
			w := 1 + r.IntN(4)
			q.Leave(q.Join(a.class, a.key, w))
			m.weigh(a, w)
		}
		switch do := r.IntN(10); {
		case do < 4: // somebody asks
			name, refused := m.add(a, do == 0)
			var ask, gone *admission.Ask[int]
			if do == 0 {
				ask = q.Grow(shares[a], name)
			} else {
				ask, gone = q.Add(shares[a], name)
			}
			handles[name] = ask
			if (gone != nil) != (refused != 0) || gone != nil && gone.For != refused {
				return fmt.Errorf("ask %d of %+v in a queue of %d: turned away %+v, want %d", name, a, m.most, gone, refused)
			}
		case do < 5 && len(m.asks) > 0: // somebody gives up
			x := m.asks[r.IntN(len(m.asks))]
			q.Withdraw(handles[x.name])
			q.Withdraw(handles[x.name]) // again, which changes nothing
			m.drop(x.name)
		case do < 7 && len(m.asks) > 0: // the next one goes in
			x, tokens := m.head(), 1+r.IntN(50)
			shares[x.of].Begin(tokens)
			q.Withdraw(handles[x.name])
			m.open(x.of)
			m.accounts[x.of].promised += tokens
			m.drop(x.name)
			grants = append(grants, &grant{x.of, shares[x.of], tokens})
		case do < 9 && len(grants) > 0: // somebody is served
			g := grants[r.IntN(len(grants))]
			n := min(g.left, 1+r.IntN(20))
			if n == 0 {
				continue
			}
			g.share.Serve(n)
			m.serve(g.of, n)
			g.left -= n
		case len(grants) > 0: // a grant changes, or ends
			i := r.IntN(len(grants))
			g := grants[i]
			if r.IntN(4) == 0 {
				n := r.IntN(30) - g.left/2
				g.share.Change(n)
				g.left += n
				m.accounts[g.of].promised += n
				break
			}
			g.share.End(g.left)
			m.accounts[g.of].promised -= g.left
			m.close(g.of)
			grants = slices.Delete(grants, i, i+1)
		}
		head, want := q.Head(), m.head()
		if q.Len() != len(m.asks) || (head == nil) != (want == nil) || head != nil && (head.For != want.name || head.Share() != shares[want.of]) {
			return fmt.Errorf("%d asks, the next is %+v; want %d, %+v", q.Len(), head, len(m.asks), want)
		}
		all := 0
		q.All(func(*admission.Ask[int]) bool { all++; return true })
		if all != q.Len() {
			return fmt.Errorf("All has %d of %d asks", all, q.Len())
		}
	}
	return nil
}
