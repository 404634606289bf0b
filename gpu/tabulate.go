package gpu

import "github.com/moeflux/moeflux-actor/model/quant"

// Tabulate writes a table of experts to Table.At.
type Tabulate struct {
	Table *ExpertTable
}

// Kind returns the kind, see Op.
func (o *Tabulate) Kind() Kind { return KindTabulate }

// Name returns the operation's name, see Op.
func (o *Tabulate) Name() string { return "tabulate" }

// Check requires a table with a place on the device.
func (o *Tabulate) Check() error {
	c := checker{op: o.Name()}
	switch {
	case o.Table == nil:
		c.fail("no Table")
	case o.Table.At.IsZero():
		c.fail("the table has no place on the device")
	}
	if c.ok() {
		c.bytes("Table.At", o.Table.At, product(len(o.Table.Experts), TableBytes), 8)
		c.experts(o.Table.Experts)
	}
	return c.result()
}

// Retabulate replaces the expert at Index of a table that Tabulate wrote, in the device's form of
// the table alone: Table.Experts stays as it was. Operations after it, of these Commands and of
// what is submitted later, read the new expert's weights. Earlier ones may read the old one's until
// they are done.
//
// So experts can move, as from the host's memory to the device's. The new expert has the shape and
// formats of the table's first.
type Retabulate struct {
	Table  *ExpertTable
	Index  int
	Expert Expert
}

// Kind returns the kind, see Op.
func (o *Retabulate) Kind() Kind { return KindRetabulate }

// Name returns the operation's name, see Op.
func (o *Retabulate) Name() string { return "retabulate" }

// Check requires a table on the device, one of its indices, and an expert like the table's others.
func (o *Retabulate) Check() error { return o.check(false) }

// check is Check for an operation whose table earlier operations of its Commands may write.
func (o *Retabulate) check(tabulated bool) error {
	c := checker{op: o.Name()}
	switch {
	case o.Table == nil:
		c.fail("no Table")
	case !o.Table.written && !tabulated:
		c.fail("the table's form on the device was never written")
	case o.Index < 0 || o.Index >= len(o.Table.Experts):
		c.fail("index %d is outside the %d experts there are", o.Index, len(o.Table.Experts))
	}
	if c.ok() {
		c.alike(&o.Table.Experts[0], &o.Expert)
	}
	return c.result()
}

// TableBytes is the room that a device may want for its own form of one expert's entry in a table.
const TableBytes = 128

// ExpertTable is experts of one layer, which share their shape and formats; picks are indices into
// it.
//
// Without At it travels with each operation that uses it. With At, which has TableBytes for each
// expert at a multiple of 8, the device keeps its own form of it there: Tabulate writes it, from
// then on the table does not change, and Retabulate replaces single entries of the device's form.
type ExpertTable struct {
	Experts []Expert
	At      View
	// Kept is the device's own, since Tabulate.
	Kept any

	written bool // by a Tabulate that a device has accepted
}

// Expert is one routed expert's weights. Gate and Up are [I, H], Down is [H, I]. Biases are float32
// and as long as their matrix has rows; the zero View means none, and an expert has all or none.
type Expert struct {
	Gate, Up, Down             Matrix
	GateBias, UpBias, DownBias View
}

// Biased reports whether the expert has biases.
func (e *Expert) Biased() bool { return !e.GateBias.IsZero() }

// experts requires experts of one shape, the formats of each matrix the same in all.
func (c *checker) experts(list []Expert) {
	c.positive("number of Experts", len(list))
	if !c.ok() {
		return
	}
	for i := range list {
		c.alike(&list[0], &list[i])
		c.within("expert", i)
		if !c.ok() {
			return
		}
	}
}

// alike requires an expert of the shape and formats of the first.
func (c *checker) alike(first, e *Expert) {
	inner, dim := first.Gate.Rows, first.Gate.Cols
	c.matrix("Gate", &e.Gate)
	c.matrix("Up", &e.Up)
	c.matrix("Down", &e.Down)
	c.shape("Gate", &e.Gate, inner, dim)
	c.shape("Up", &e.Up, inner, dim)
	c.shape("Down", &e.Down, dim, inner)
	c.expertBiases(e, first.Biased())
	is := [3]quant.Format{e.Gate.Format, e.Up.Format, e.Down.Format}
	want := [3]quant.Format{first.Gate.Format, first.Up.Format, first.Down.Format}
	if c.ok() && is != want {
		c.fail("formats %v, %v and %v, the first expert has %v, %v and %v",
			is[0], is[1], is[2], want[0], want[1], want[2])
	}
}

// expertBiases requires the biases of all of an expert's products, or none.
func (c *checker) expertBiases(e *Expert, biased bool) {
	if !biased {
		if c.ok() && (e.Biased() || !e.UpBias.IsZero() || !e.DownBias.IsZero()) {
			c.fail("biases, where the first expert has none for its gate")
		}
		return
	}
	c.floats("GateBias", e.GateBias, e.Gate.Rows)
	c.floats("UpBias", e.UpBias, e.Up.Rows)
	c.floats("DownBias", e.DownBias, e.Down.Rows)
}
