package gpu

// FetchLanes is how many Fetches can be under way at once.
const FetchLanes = 2

// Fetch copies host bytes to the device beside the operations that come after it: the copies begin
// when the operations before it are done, and Fetched has the later ones wait. So what comes
// between the two neither reads nor writes what is copied. A device may make the copies at once
// instead.
//
// Fetches of one lane are in order. A ticket does not tell of copies that no Fetched has waited
// for.
type Fetch struct {
	Lane   int // 0 to FetchLanes-1
	Copies []HostCopy
}

// HostCopy is bytes for the device.
type HostCopy struct {
	Dst View
	// Src is part of a buffer of Discrete.NewPinned, and stays as it is until the copy is done.
	Src []byte
}

// Kind returns the kind, see Op.
func (o *Fetch) Kind() Kind { return KindFetch }

// Name returns the operation's name, see Op.
func (o *Fetch) Name() string { return "fetch" }

// Check reports sizes and views that do not fit, see Op. The error is an *OpError.
func (o *Fetch) Check() error {
	c := checker{op: o.Name()}
	c.lane(o.Lane)
	c.positive("number of Copies", len(o.Copies))
	for i := range o.Copies {
		x := &o.Copies[i]
		c.positive("bytes of Src", len(x.Src))
		c.bytes("Dst", x.Dst, len(x.Src), 1)
		c.within("copy", i)
	}
	return c.result()
}

// Fetched has the operations after it wait for the last Fetch of a lane.
type Fetched struct{ Lane int }

// Kind returns the kind, see Op.
func (o *Fetched) Kind() Kind { return KindFetched }

// Name returns the operation's name, see Op.
func (o *Fetched) Name() string { return "fetched" }

// Check requires a lane, see Op. The error is an *OpError.
func (o *Fetched) Check() error {
	c := checker{op: o.Name()}
	c.lane(o.Lane)
	return c.result()
}

// lane requires one of the lanes of a Fetch.
func (c *checker) lane(n int) {
	if n < 0 || n >= FetchLanes {
		c.fail("Lane is %d, want 0 to %d", n, FetchLanes-1)
	}
}
