package gpu

// Op is one operation. The types that implement it are the structs of this package, by pointer.
type Op interface {
	// Kind tells the type. It looks at nothing of the operation, which may be a nil pointer.
	Kind() Kind
	// Name is the operation's name in errors and figures: "matmul".
	Name() string
	// Check reports sizes and views that do not fit. Devices call it in Submit.
	Check() error
}

// Commands collects operations for one Submit. The zero value is ready. After its ticket is done it
// may be Reset and filled again; operations are then built in memory kept from before.
type Commands struct {
	// Urgent lets a queue run the operations before, or amid, those of Commands that are not
	// urgent, see Queue.
	Urgent bool
	// Tag is the submitter's own mark. No queue looks at it.
	Tag uint8

	// Plain makes a device compute each operation by itself, also those that it would compute
	// together with the next ones. The bits must be the same, so a caller can compare them.
	Plain bool

	// Part is which part of a Split computes the operations. No other device looks at it.
	Part int
	// Moves are made before the operations, and after everything that was submitted before to the
	// parts that they come from. No device but a Split looks at them.
	Moves []Move

	ops  []Op
	kept [NumKinds]kept // the memory of each kind's operations; nil where there was none
}

// Encode appends a copy of an operation to c.
func Encode[T any, P interface {
	*T
	Op
}](c *Commands, op T) {
	k := P(nil).Kind()
	if c.kept[k] == nil {
		c.kept[k] = new(arena[T])
	}
	c.ops = append(c.ops, P(c.kept[k].(*arena[T]).put(op)))
}

// encoded returns the operations of T's kind, in order.
func encoded[T any](c *Commands, k Kind) []*T {
	a, ok := c.kept[k].(*arena[T])
	if !ok {
		return nil
	}
	return a.items[:a.used]
}

// Ops returns the operations in order; valid until Reset.
func (c *Commands) Ops() []Op { return c.ops }

// Len returns the number of operations.
func (c *Commands) Len() int { return len(c.ops) }

// Reset empties c. What its operations pointed to is let go.
func (c *Commands) Reset() {
	c.Urgent, c.Plain, c.Tag, c.Part = false, false, 0, 0
	clear(c.Moves)
	c.Moves = c.Moves[:0]
	clear(c.ops)
	c.ops = c.ops[:0]
	for _, k := range c.kept {
		if k != nil {
			k.reset()
		}
	}
}

// kept is memory of operations of one kind: an arena.
type kept interface{ reset() }

// arena hands out pointers to values of one type and takes all of them back at once. Pointers stay
// valid while it grows, and a value's memory is used again after reset.
type arena[T any] struct {
	items []*T
	used  int
}

func (a *arena[T]) put(v T) *T {
	if a.used == len(a.items) {
		a.items = append(a.items, new(T))
	}
	p := a.items[a.used]
	a.used++
	*p = v
	return p
}

func (a *arena[T]) reset() {
	var zero T
	for _, p := range a.items[:a.used] {
		*p = zero
	}
	a.used = 0
}
