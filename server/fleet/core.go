package fleet

import (
	"fmt"
	"slices"
	"time"
)

// Need is the memory of a loaded model, in bytes.
type Need struct {
	// Fixed is what is there as long as the model is: weights, states of texts, and experts that
	// have no slots.
	Fixed int64
	// Least and Most bound what expert slots take; both are 0 where experts have none.
	Least, Most int64
}

// least is the memory without which a model does not load.
func (n Need) least() int64 { return n.Fixed + n.Least }

// Spec is what the core knows of a model from the beginning.
type Spec struct {
	Name   string
	Need   Need
	Pinned bool // it is loaded first and never unloaded
}

// Kind is what a command asks for.
type Kind int

// The kinds of commands.
const (
	Admit  Kind = iota // let the first N of those that wait for the model run
	Load               // load it, with Bytes for expert slots; Loaded or Failed answers
	Unload             // unload it; Gone answers
	Share              // give its expert slots Bytes
)

// Command is something to do, in the order in which commands come.
type Command struct {
	Kind  Kind
	Model int
	N     int
	Bytes int64
}

// phase is where a model is.
type phase int

const (
	away phase = iota
	loading
	here
	leaving
)

// held is what the core knows of a model now.
type held struct {
	Spec
	phase          phase
	users, waiting int  // requests
	closing        bool // others wait for its memory: who asks for it now waits as well
	share          int64
	since          time.Duration // when it was loaded
	used           time.Duration // when its last user left
	took           time.Duration // its last loading
	busy           busyness
}

// Core decides which models are loaded, and what memory each has for expert slots. Times are since
// any moment, the same for all calls, and never go back.
type Core struct {
	budget int64
	idle   time.Duration // after which a model is unloaded; 0: never
	models []held
	queue  []int // models that requests wait for, the one that was wanted first at the front

	levelled time.Duration // when shares were looked at last
	turn     time.Duration // when the models that must make room have had theirs; 0: none waits for that
	out      []Command
}

// NewCore returns a core of models that are all away. The error says what can never fit in the
// budget.
func NewCore(budget int64, idle time.Duration, specs []Spec) (*Core, error) {
	c := &Core{budget: budget, idle: idle}
	var pinned int64
	for i, s := range specs {
		c.models = append(c.models, held{Spec: s, took: readTime(s.Need.Fixed)})
		if s.Pinned {
			pinned += s.Need.least()
			c.queue = append(c.queue, i)
		}
	}
	if pinned > budget {
		return nil, fmt.Errorf("the pinned models need %d MiB together, and there are %d", pinned>>20, budget>>20)
	}
	for _, s := range specs {
		if !s.Pinned && pinned+s.Need.least() > budget {
			beside := ""
			if pinned > 0 {
				beside = fmt.Sprintf(" beside %d MiB of pinned models", pinned>>20)
			}
			return nil, fmt.Errorf("the model %s needs %d MiB%s, and there are %d", s.Name, s.Need.least()>>20, beside, budget>>20)
		}
	}
	return c, nil
}

// Want tells that a request wants a model. It runs once an Admit names the model for it.
func (c *Core) Want(now time.Duration, model int) []Command {
	m := &c.models[model]
	m.waiting++
	if m.phase == here && !m.closing {
		c.admit(now, model)
	} else if !slices.Contains(c.queue, model) {
		c.queue = append(c.queue, model)
	}
	return c.settle(now)
}

// Left tells that a user of a model has ended.
func (c *Core) Left(now time.Duration, model int) []Command {
	m := &c.models[model]
	if m.users--; m.users == 0 {
		m.busy.set(now, false)
	}
	m.used = now
	return c.settle(now)
}

// GaveUp tells that a request does not wait any more.
func (c *Core) GaveUp(now time.Duration, model int) []Command {
	c.models[model].waiting--
	return c.settle(now)
}

// Loaded tells that a model is loaded, and how long that took.
func (c *Core) Loaded(now time.Duration, model int, took time.Duration) []Command {
	m := &c.models[model]
	m.phase, m.since, m.used, m.took = here, now, now, took
	c.admit(now, model)
	return c.settle(now)
}

// Failed tells that a model could not be loaded. Those that wait for it are not told by a command:
// they have failed with it.
func (c *Core) Failed(now time.Duration, model int) []Command {
	m := &c.models[model]
	m.phase, m.waiting, m.share = away, 0, 0
	c.queue = slices.DeleteFunc(c.queue, func(i int) bool { return i == model })
	c.levelled = 0
	return c.settle(now)
}

// Gone tells that a model is unloaded.
func (c *Core) Gone(now time.Duration, model int) []Command {
	m := &c.models[model]
	m.phase, m.closing, m.share = away, false, 0
	c.levelled = 0
	return c.settle(now)
}

// Tick lets time act; Wake says when that is due.
func (c *Core) Tick(now time.Duration) []Command { return c.settle(now) }

// Wake returns when Tick has something to do, if nothing else happens before; ok is false if never.
func (c *Core) Wake() (at time.Duration, ok bool) {
	var all []time.Duration
	if c.turn > 0 {
		all = append(all, c.turn)
	}
	sharing := 0
	for i := range c.models {
		m := &c.models[i]
		if c.idle > 0 && m.unused() {
			all = append(all, m.used+c.idle)
		}
		if m.phase == here && m.Need.Most > m.Need.Least {
			sharing++
		}
	}
	if sharing > 1 {
		all = append(all, c.levelled+levelEvery)
	}
	if len(all) == 0 {
		return 0, false
	}
	return slices.Min(all), true
}

// unused reports whether a model is loaded for nobody.
func (m *held) unused() bool { return m.phase == here && m.users == 0 && !m.Pinned }

func (c *Core) say(k Command) { c.out = append(c.out, k) }

// admit lets all requests run that wait for a model, which is here.
func (c *Core) admit(now time.Duration, model int) {
	m := &c.models[model]
	c.queue = slices.DeleteFunc(c.queue, func(i int) bool { return i == model })
	m.closing = false
	m.busy.set(now, m.users+m.waiting > 0)
	if m.waiting > 0 {
		c.say(Command{Kind: Admit, Model: model, N: m.waiting})
		m.users, m.waiting = m.users+m.waiting, 0
	}
}

// settle does what follows from what has happened.
func (c *Core) settle(now time.Duration) []Command {
	if c.idle > 0 {
		for i := range c.models {
			if m := &c.models[i]; m.unused() && now-m.used >= c.idle {
				c.unload(i)
			}
		}
	}
	c.makeRoom(now)
	c.level(now)
	out := c.out
	c.out = nil
	return out
}

func (c *Core) unload(model int) {
	m := &c.models[model]
	m.phase, m.closing = leaving, true
	c.say(Command{Kind: Unload, Model: model})
}
