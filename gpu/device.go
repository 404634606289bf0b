package gpu

import "errors"

// ErrClosed is the error of work given to a queue or device after Close.
var ErrClosed = errors.New("gpu: device is closed")

// ErrOutOfMemory is wrapped by NewBuffer's error when the device cannot give the bytes.
var ErrOutOfMemory = errors.New("gpu: out of device memory")

// Device makes buffers and queues. Its methods may be called from many goroutines.
type Device interface {
	// Name describes the device for people: "host (2 threads, portable)".
	Name() string
	// NewBuffer returns zeroed device memory of n bytes, n > 0, aligned to at least 64.
	// If there is no room the error wraps ErrOutOfMemory and says how much was asked for.
	NewBuffer(n int) (Buffer, error)
	// Wrap makes host memory visible to the device without a copy where the device can: weights
	// mapped from a file, expert slots. The memory stays the caller's and must outlive the buffer;
	// operations only read it, but the caller may write it while no submitted work reads it.
	Wrap(mem []byte) (Buffer, error)
	// NewQueue returns a queue. Work in different queues has no order.
	NewQueue() (Queue, error)
	// Close frees what the device holds. Queues must be closed and buffers released before.
	Close() error
}

// Buffer is a piece of device memory.
type Buffer interface {
	// Len returns the size in bytes.
	Len() int
	// Bytes returns the memory if the host can address it, else nil. The host may touch it only
	// while no submitted work does.
	Bytes() []byte
	// Release gives the memory back; of a wrapped buffer only the wrapping. Releasing twice is a
	// no-op.
	Release()
}

// Queue runs Commands in the order of Submit, but urgent ones may overtake those that are not: they
// may run before, or amid, any others that were submitted earlier and are not done. So the urgent
// ones are in order, the others are too, and the others see what was submitted before them, urgent
// or not. A queue may also keep the order of Submit.
type Queue interface {
	// Submit checks every operation (the first bad one is the error, and nothing runs), hands c to
	// the device and returns at once. c and all that its operations point to belong to the queue
	// until the ticket is done. It is called from one goroutine at a time.
	Submit(c *Commands) (Ticket, error)
	// Close waits for the submitted work and ends the queue.
	Close() error
}

// Watched is a Queue that reports when it works, so that working time can be told from waiting
// time.
type Watched interface {
	// Watch makes the queue call f before it begins the work of a Submit and after it has ended it,
	// and before a ticket tells that it is done. Of urgent Submits to a part f is told in their
	// order, and of others in theirs. Urgent work that begins amid other work ends before that goes
	// on. Parts of a Split are told of side by side, from goroutines of their own. f must not block
	// and not call the queue. Watch is called once, before the first Submit.
	Watch(f func(Progress))
}

// Progress is what a Watched tells: the beginning or the end of the work of a Submit.
type Progress struct {
	Part    int  // of a Split, else 0
	Working bool // it begins
	Urgent  bool
	// DeviceNS is what the ticket will tell; 0 at the beginning. LateNS is how long ago the work
	// began or ended, if whoever waits for the device was busy with what was done before, and
	// looked late; else 0.
	DeviceNS, LateNS int64
}

// Preemptive is a Device whose queues run urgent Commands amid others, a few milliseconds after
// Submit at most.
type Preemptive interface {
	Device
	// Preempts does nothing: it says what the device does.
	Preempts()
}

// Ticket is the completion of one Submit.
type Ticket interface {
	// OnDone calls f once when the work is complete, with nil or what failed: at once, if it is
	// already complete, else later from a goroutine of the device. f must not block; it may submit
	// to the queue. OnDone is called at most once per ticket. When f has returned, the ticket is
	// the device's again, for another Submit.
	OnDone(f func(error))
	// DeviceNS returns how long the device worked on it, in nanoseconds; 0 before it is done. It
	// may be asked until OnDone's f has returned.
	DeviceNS() int64
}

// View is a window on a buffer: everything from Offset, in bytes. The operation knows the length.
// The zero View means "none" where an operation allows that.
type View struct {
	Buf    Buffer
	Offset int
}

// IsZero reports whether v is the zero View.
func (v View) IsZero() bool { return v.Buf == nil }

// At returns the view that begins n bytes further on.
func (v View) At(n int) View { return View{v.Buf, v.Offset + n} }

// Floats returns the view that begins n float32 further on.
func (v View) Floats(n int) View { return View{v.Buf, v.Offset + 4*n} }
