package visit

import (
	"cmp"
	"net/http"
	"slices"
	"sync"
	"time"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/server/api"
)

// Tally is what is known of a call while it is answered: for the log, the figures, and whoever
// watches. Its choices write it from goroutines of their own, as their events come; what a client
// does not read in time it has, too.
type Tally struct {
	Visit *Visit
	Model string // as it is listed
	Path  string
	Call  *api.Call
	Began time.Time

	mu      sync.Mutex
	choices []Answer
}

// Answer is what is known of one answer.
type Answer struct {
	Sequence uint64 // of the engine; 0: none yet
	Prompt   int    // tokens, once it is made
	Reused   int
	Tokens   int
	Prepared time.Time // the prompt was made; zero: not yet
	Read     bool      // all of it
	First    time.Time // the first token came; zero: none has
	Last     time.Time
	End      *moeflux.End // nil: not ended, or not in order
	Err      error
	Over     bool
}

// Noted notes an event of a choice. Of a token it returns how long it took since what came before
// it, and whether it is the first.
func (t *Tally) Noted(choice int, e *moeflux.Event) (since time.Duration, first bool) {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	c := &t.choices[choice]
	switch {
	case e.Prompt != nil:
		c.Prompt, c.Sequence, c.Prepared = len(e.Prompt.IDs), e.Prompt.Sequence, now
	case e.Read != nil:
		c.Reused, c.Read = e.Read.Reused, true
	case e.End != nil:
		c.End = e.End
	}
	if e.Token == nil {
		return 0, false
	}
	before := c.Last
	if c.Last = now; c.Tokens == 0 {
		before, c.First = t.Began, now
	}
	c.Tokens++
	return now.Sub(before), c.Tokens == 1
}

// Ended notes that a choice has ended, and returns what is known of it.
func (t *Tally) Ended(choice int, err error) Answer {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := &t.choices[choice]
	c.Over, c.Err = true, err
	return *c
}

// Answers returns what is known of each choice.
func (t *Tally) Answers() []Answer {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.choices)
}

// UnderWay is the calls that are being answered.
type UnderWay struct {
	mu    sync.Mutex
	calls map[*Tally]struct{}
}

// NewUnderWay returns an empty set of calls.
func NewUnderWay() *UnderWay { return &UnderWay{calls: make(map[*Tally]struct{})} }

// Begin notes that a call of a model is being answered.
func (u *UnderWay) Begin(r *http.Request, model string, c *api.Call) *Tally {
	v := Of(r)
	t := &Tally{Visit: v, Model: model, Path: RouteOf(r), Call: c, Began: v.Began, choices: make([]Answer, c.Answers())}
	v.Tally = t
	u.mu.Lock()
	defer u.mu.Unlock()
	u.calls[t] = struct{}{}
	return t
}

// End notes that a call is no longer being answered.
func (u *UnderWay) End(t *Tally) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.calls, t)
}

// All returns the calls under way, the oldest first.
func (u *UnderWay) All() []*Tally {
	u.mu.Lock()
	all := make([]*Tally, 0, len(u.calls))
	for t := range u.calls {
		all = append(all, t)
	}
	u.mu.Unlock()
	slices.SortFunc(all, func(a, b *Tally) int { return cmp.Or(a.Began.Compare(b.Began), cmp.Compare(a.Visit.ID, b.Visit.ID)) })
	return all
}

// BusySince returns since when each model's engine has had one of the answers that are under way.
func (u *UnderWay) BusySince() map[string]time.Time {
	since := make(map[string]time.Time)
	for _, t := range u.All() {
		if at := t.busySince(); !at.IsZero() && (since[t.Model].IsZero() || at.Before(since[t.Model])) {
			since[t.Model] = at
		}
	}
	return since
}

// busySince returns since when the engine has had one of the call's answers; zero if it has none.
func (t *Tally) busySince() (since time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.choices {
		if c := &t.choices[i]; !c.Over && !c.Prepared.IsZero() && (since.IsZero() || c.Prepared.Before(since)) {
			since = c.Prepared
		}
	}
	return since
}

// Spent returns the tokens that the call has cost so far: of prompts what was not known, and what
// came out.
func (t *Tally) Spent() (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.choices {
		c := &t.choices[i]
		n += c.Prompt - c.Reused + c.Tokens
	}
	return n
}

// Open returns how many answers of a call have not ended.
func (t *Tally) Open() (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.choices {
		if !t.choices[i].Over {
			n++
		}
	}
	return n
}
