package server

import (
	"cmp"
	"net/http"
	"slices"
	"sync"
	"time"

	moeflux "github.com/moeflux/moeflux-actor"
)

// tally is what is known of a call while it is answered: for the log, the figures, and whoever
// watches. Its choices write it from goroutines of their own, as their events come; what a client
// does not read in time it has, too.
type tally struct {
	visit *visit
	model string // as it is listed
	path  string
	call  *call
	began time.Time

	mu      sync.Mutex
	choices []choiceTally
}

// choiceTally is what is known of one answer.
type choiceTally struct {
	sequence uint64 // of the engine; 0: none yet
	prompt   int    // tokens, once it is made
	reused   int
	tokens   int
	prepared time.Time // the prompt was made; zero: not yet
	read     bool      // all of it
	first    time.Time // the first token came; zero: none has
	last     time.Time
	end      *moeflux.End // nil: not ended, or not in order
	err      error
	over     bool
}

// noted notes an event of a choice. Of a token it returns how long it took since what came before
// it, and whether it is the first.
func (t *tally) noted(choice int, e *moeflux.Event) (since time.Duration, first bool) {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	c := &t.choices[choice]
	switch {
	case e.Prompt != nil:
		c.prompt, c.sequence, c.prepared = len(e.Prompt.IDs), e.Prompt.Sequence, now
	case e.Read != nil:
		c.reused, c.read = e.Read.Reused, true
	case e.End != nil:
		c.end = e.End
	}
	if e.Token == nil {
		return 0, false
	}
	before := c.last
	if c.last = now; c.tokens == 0 {
		before, c.first = t.began, now
	}
	c.tokens++
	return now.Sub(before), c.tokens == 1
}

// ended notes that a choice has ended, and returns what is known of it.
func (t *tally) ended(choice int, err error) choiceTally {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := &t.choices[choice]
	c.over, c.err = true, err
	return *c
}

// answers returns what is known of each choice.
func (t *tally) answers() []choiceTally {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.choices)
}

// underWay is the calls that are being answered.
type underWay struct {
	mu    sync.Mutex
	calls map[*tally]struct{}
}

func newUnderWay() *underWay { return &underWay{calls: make(map[*tally]struct{})} }

// begin notes that a call of a model is being answered.
func (u *underWay) begin(r *http.Request, model string, c *call) *tally {
	v := visitOf(r)
	t := &tally{visit: v, model: model, path: routeOf(r), call: c, began: v.began, choices: make([]choiceTally, c.answers())}
	v.tally = t
	u.mu.Lock()
	defer u.mu.Unlock()
	u.calls[t] = struct{}{}
	return t
}

func (u *underWay) end(t *tally) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.calls, t)
}

// all returns the calls under way, the oldest first.
func (u *underWay) all() []*tally {
	u.mu.Lock()
	all := make([]*tally, 0, len(u.calls))
	for t := range u.calls {
		all = append(all, t)
	}
	u.mu.Unlock()
	slices.SortFunc(all, func(a, b *tally) int { return cmp.Or(a.began.Compare(b.began), cmp.Compare(a.visit.id, b.visit.id)) })
	return all
}

// busySince returns since when each model's engine has had one of the answers that are under way.
func (u *underWay) busySince() map[string]time.Time {
	since := make(map[string]time.Time)
	for _, t := range u.all() {
		if at := t.busySince(); !at.IsZero() && (since[t.model].IsZero() || at.Before(since[t.model])) {
			since[t.model] = at
		}
	}
	return since
}

// busySince returns since when the engine has had one of the call's answers; zero if it has none.
func (t *tally) busySince() (since time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.choices {
		if c := &t.choices[i]; !c.over && !c.prepared.IsZero() && (since.IsZero() || c.prepared.Before(since)) {
			since = c.prepared
		}
	}
	return since
}

// spent returns the tokens that the call has cost so far: of prompts what was not known, and what
// came out.
func (t *tally) spent() (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.choices {
		c := &t.choices[i]
		n += c.prompt - c.reused + c.tokens
	}
	return n
}

// open returns how many answers of a call have not ended.
func (t *tally) open() (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.choices {
		if !t.choices[i].over {
			n++
		}
	}
	return n
}
