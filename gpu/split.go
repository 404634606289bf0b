package gpu

// Split is a Device that is made of several, its parts. Each has memory of its own, which no other
// part computes with: a buffer is made by the part that is to use it, and Commands are computed by
// the part that they name (Commands.Part). What the work of one part needs of another comes with it
// (Commands.Moves).
//
// A queue of a Split has a queue of each part, which keeps the order of its own Commands; the parts
// compute side by side. The ticket of Commands with moves is done after those of the part that they
// come from, as far as these were submitted before.
type Split interface {
	Device
	// Parts returns the devices, which stay the Split's. NewBuffer and Wrap of a Split are those of
	// the first one.
	Parts() []Device
}

// PartsOf returns the parts of a device; one that is not a Split is its own only part.
func PartsOf(d Device) []Device {
	if s, ok := d.(Split); ok {
		return s.Parts()
	}
	return []Device{d}
}

// Move copies bytes between buffers of two parts of a Split.
type Move struct {
	Dst, Src View
	Bytes    int
	From     int // the part of Src
}

// check reports a move that does not fit into its buffers.
func (m *Move) check() error {
	c := checker{op: "move"}
	c.positive("Bytes", m.Bytes)
	c.bytes("Dst", m.Dst, m.Bytes, 1)
	c.bytes("Src", m.Src, m.Bytes, 1)
	return c.result()
}

// CheckMoves reports the first of the moves that does not fit into its buffers, as an *OpError.
func (c *Commands) CheckMoves() error {
	for i := range c.Moves {
		if err := c.Moves[i].check(); err != nil {
			return err
		}
	}
	return nil
}

// Receiver is a Queue that takes memory from another device without the host.
type Receiver interface {
	Queue
	// Reaches reports whether it takes memory from the device of another queue. The answer does not
	// change.
	Reaches(from Queue) bool
	// Receive makes the moves, all from one device that it reaches, before what is submitted from
	// now on, and when everything is done that was submitted to from so far. Nobody waits for it.
	Receive(from Queue, moves []Move) error
}
