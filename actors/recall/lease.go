package recall

import (
	"errors"
	"sync"
	"time"

	"github.com/moeflux/moeflux-actor/snapshot"
)

// patience is how long a disk may take over what it was given last, while a state is kept in the
// engine's memory to be read on.
const patience = 30 * time.Second

// errSlow ends the reading of a state.
var errSlow = errors.New("the disk does not take what is written to it")

// lease is a state that is read for as long as the disk takes what was read.
type lease struct {
	mu    sync.Mutex // held while the state is read
	f     Frozen
	timer *time.Timer
	over  bool
}

func newLease(f Frozen) *lease {
	l := &lease{f: f}
	l.timer = time.AfterFunc(patience, l.end)
	return l
}

// ReadRows reads the state, see snapshot.Source.
func (l *lease) ReadRows(layer int, p snapshot.Part, first int, dst []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return errSlow
	}
	l.timer.Reset(patience)
	return l.f.Source.ReadRows(layer, p, first, dst)
}

// end gives the state back. It may come again.
func (l *lease) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer.Stop()
	if !l.over {
		l.over = true
		l.f.Release()
	}
}
