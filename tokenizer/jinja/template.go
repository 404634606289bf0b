package jinja

import (
	"time"
)

// Template is a parsed template. It never changes; many goroutines may render it at once.
type Template struct {
	name string
	body []stmt
}

// Name is the name given to Parse.
func (t *Template) Name() string { return t.name }

// Config bounds one rendering and gives it the time. The zero value is ready for use.
type Config struct {
	// Now gives strftime_now its time. Nil makes strftime_now fail.
	Now func() time.Time
	// MaxOutputBytes bounds the text, and every string built on the way. 0 means 64 MiB.
	MaxOutputBytes int
	// MaxAllocBytes bounds what all values made during the rendering take together, those already
	// dropped included. 0 means 512 MiB.
	MaxAllocBytes int
	// MaxSteps bounds the work, counted in evaluated parts of the template and items visited. 0
	// means 100 million, some ten seconds.
	MaxSteps int
	// MaxDepth bounds nesting: of calls, expressions, loops, and of values when they are printed or
	// compared. 0 means 5000. A level costs about 1 kB of stack.
	MaxDepth int
}

func (c Config) withDefaults() Config {
	set := func(p *int, v int) {
		if *p <= 0 {
			*p = v
		}
	}
	set(&c.MaxOutputBytes, 64<<20)
	set(&c.MaxAllocBytes, 512<<20)
	set(&c.MaxSteps, 100_000_000)
	set(&c.MaxDepth, 5000)
	return c
}

// Render renders the template with vars, which may be nil. It is RenderWith the
// zero Config.
func (t *Template) Render(vars *Dict) (string, error) { return t.RenderWith(vars, Config{}) }

// RenderWith renders the template with vars, which may be nil. The error is an
// *Error.
func (t *Template) RenderWith(vars *Dict, cfg Config) (string, error) {
	if vars == nil {
		vars = NewDict()
	}
	r := &run{name: t.name, cfg: cfg.withDefaults(), vars: vars}
	out := &buffer{run: r}
	if _, err := r.exec(t.body, &scope{}, out); err != nil {
		return "", at(err, t.name, 1)
	}
	return out.String(), nil
}

// run is the state of one rendering.
type run struct {
	name  string
	cfg   Config
	vars  *Dict
	steps int
	alloc int
	depth int
}

// step counts work.
func (r *run) step(n int) error {
	r.steps += n
	if r.steps > r.cfg.MaxSteps || r.steps < 0 {
		return fail(KindLimit, "the template takes more than %d steps", r.cfg.MaxSteps)
	}
	return nil
}

// charge counts n bytes of new values. It is called before they are made when n does not follow
// from what is there.
func (r *run) charge(n int) error {
	if n > r.cfg.MaxOutputBytes {
		return fail(KindLimit, "a value of %d bytes exceeds the limit of %d", n, r.cfg.MaxOutputBytes)
	}
	r.alloc += n
	if r.alloc > r.cfg.MaxAllocBytes || r.alloc < 0 {
		return fail(KindLimit, "the values of the template take more than %d bytes", r.cfg.MaxAllocBytes)
	}
	return nil
}

// itemBytes is what one item of a list counts for.
const itemBytes = 16

// chargeItems counts a list of n items.
func (r *run) chargeItems(n int) error {
	if n > r.cfg.MaxOutputBytes/itemBytes {
		return fail(KindLimit, "a list of %d items exceeds the limit", n)
	}
	return r.charge(n * itemBytes)
}

// newString counts s and returns it.
func (r *run) newString(s string, err error) (Value, error) {
	if err == nil {
		err = r.charge(len(s))
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// newList counts items and returns their list.
func (r *run) newList(items []Value, err error) (Value, error) {
	if err == nil {
		err = r.chargeItems(len(items))
	}
	if err != nil {
		return nil, err
	}
	return &List{items}, nil
}

// newStrings makes a list of strings.
func (r *run) newStrings(parts []string) (Value, error) {
	if err := r.chargeItems(len(parts)); err != nil {
		return nil, err
	}
	items := make([]Value, len(parts))
	for i, p := range parts {
		items[i] = p
	}
	return &List{items}, nil
}

// enter goes one level deeper; leave must follow.
func (r *run) enter() error {
	if r.depth++; r.depth > r.cfg.MaxDepth {
		r.depth--
		return fail(KindRecursion, "maximum recursion depth exceeded")
	}
	return nil
}

func (r *run) leave() { r.depth-- }

// buffer collects text within the limits of its run.
type buffer struct {
	run *run
	b   []byte
}

func (b *buffer) String() string { return string(b.b) }

func (b *buffer) write(s string) error {
	if len(b.b)+len(s) > b.run.cfg.MaxOutputBytes {
		return fail(KindLimit, "a text of more than %d bytes", b.run.cfg.MaxOutputBytes)
	}
	if err := b.run.charge(len(s)); err != nil {
		return err
	}
	b.b = append(b.b, s...)
	return nil
}
