package gpu

// Mark notes how long the device had worked on its Commands when all operations before the mark
// were done. Operations on its two sides may overlap on a GPU, and do not with a mark between them:
// marks are for who asks for times.
type Mark struct {
	// Tag is the submitter's own. No device looks at it.
	Tag int32
	// NS is the time by the device's own clock, in nanoseconds. The device writes it before it
	// tells that the work is done (Ticket, Watched), and leaves it alone if it has no clock for
	// this or if the work fails before.
	NS int64
}

// Kind returns the kind, see Op.
func (o *Mark) Kind() Kind { return KindMark }

// Name returns the operation's name, see Op.
func (o *Mark) Name() string { return "mark" }

// Check returns nil, see Op.
func (o *Mark) Check() error { return nil }

// Marks returns the marks in order; valid until Reset.
func (c *Commands) Marks() []*Mark { return encoded[Mark](c, KindMark) }
