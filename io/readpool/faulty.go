package readpool

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// ErrInjected is the cause of a read that Faulty made fail.
var ErrInjected = errors.New("readpool: injected fault")

// FaultKind says how a read goes wrong.
type FaultKind uint8

// The kinds of fault.
const (
	Fail  FaultKind = iota // nothing is read; the error wraps Fault.Err, or ErrInjected
	Short                  // the first half is read; the error wraps io.ErrUnexpectedEOF
	// the read waits for Fault.Release and then for Fault.Delay before it begins
	Slow
	Corrupt // the read succeeds with one bit changed
	Panic   // the Source panics
)

var faultNames = [...]string{"fail", "short", "slow", "corrupt", "panic"}

func (k FaultKind) String() string {
	if int(k) < len(faultNames) {
		return faultNames[k]
	}
	return fmt.Sprintf("fault %d", uint8(k))
}

// Fault makes one read go wrong.
type Fault struct {
	Read    int // which read, in the order in which they begin, from 1; 0 means every read
	Kind    FaultKind
	Err     error           // of Fail; nil means ErrInjected
	Release <-chan struct{} // of Slow: closed or sent to when the read may go on; nil does not wait
	Delay   time.Duration   // of Slow
	Bit     int             // of Corrupt: which bit of the record, modulo its length
	// Again is how many later reads of the same record go wrong in the same way. A pool tries a
	// failed read again, so with 0 nobody notices, and with 1 the read fails for good.
	Again int
}

// FaultError is the error of a read that Faulty made fail.
type FaultError struct {
	Read          int // counted from 1
	Layer, Expert int
	Kind          FaultKind
	Err           error
}

func (e *FaultError) Error() string {
	return fmt.Sprintf("readpool: read %d (layer %d expert %d) made %s: %v", e.Read, e.Layer, e.Expert, e.Kind, e.Err)
}

// Unwrap returns the cause.
func (e *FaultError) Unwrap() error { return e.Err }

// poison fills what a failed read leaves undefined, so that nobody uses it unnoticed.
const poison = 0xA5

// Faulty is a Source for tests. It makes chosen reads of another Source go wrong and counts all
// reads. Several goroutines may use it.
type Faulty struct {
	src    Source
	faults []Fault // read-only
	reads  atomic.Int64

	mu    sync.Mutex
	again map[record][]*Fault // faults due in later reads of a record
}

// record names an expert's record.
type record struct{ layer, expert int }

var _ Source = (*Faulty)(nil)

// NewFaulty wraps src. Several faults may hit one read: first the Slow ones, then the first of any
// other kind.
func NewFaulty(src Source, faults ...Fault) *Faulty {
	return &Faulty{src: src, faults: faults, again: map[record][]*Fault{}}
}

// Reads returns how many reads have begun.
func (f *Faulty) Reads() int { return int(f.reads.Load()) }

// ReadExpert reads from the wrapped Source, or goes wrong. After an error nobody can take dst for a
// whole record.
func (f *Faulty) ReadExpert(layer, expert int, dst []byte) error {
	n := int(f.reads.Add(1))
	var hit *Fault
	for _, t := range f.due(n, record{layer, expert}) {
		if t.Kind == Slow {
			if t.Release != nil {
				<-t.Release
			}
			time.Sleep(t.Delay)
		} else if hit == nil {
			hit = t
		}
	}
	if hit == nil {
		return f.src.ReadExpert(layer, expert, dst)
	}
	fault := &FaultError{Read: n, Layer: layer, Expert: expert, Kind: hit.Kind, Err: hit.Err}
	switch hit.Kind {
	case Panic:
		fault.Err = ErrInjected
		panic(fault)
	case Corrupt:
		if err := f.src.ReadExpert(layer, expert, dst); err != nil {
			return err
		}
		if len(dst) > 0 {
			bit := hit.Bit % (8 * len(dst))
			dst[bit/8] ^= 1 << (bit % 8)
		}
		return nil
	case Short:
		fault.Err = io.ErrUnexpectedEOF
		if err := f.src.ReadExpert(layer, expert, dst); err != nil {
			return err
		}
		fill(dst[len(dst)/2:])
	default:
		if fault.Err == nil {
			fault.Err = ErrInjected
		}
		fill(dst)
	}
	return fault
}

// due returns the faults that hit read n, which reads this record.
func (f *Faulty) due(n int, r record) []*Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	var due []*Fault
	if left := f.again[r]; len(left) > 0 {
		due = append(due, left[0])
		f.again[r] = left[1:]
	}
	for i := range f.faults {
		t := &f.faults[i]
		if t.Read != 0 && t.Read != n {
			continue
		}
		due = append(due, t)
		if t.Read != 0 {
			for range t.Again {
				f.again[r] = append(f.again[r], t)
			}
		}
	}
	return due
}

func fill(b []byte) {
	for i := range b {
		b[i] = poison
	}
}
