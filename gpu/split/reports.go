package split

import (
	"sync"

	"github.com/moeflux/moeflux-actor/gpu"
)

// purpose is what a part's queue is given commands for.
type purpose uint8

const (
	computing   purpose = iota // what a Submit was for
	uploading                  // what the commands that follow need
	downloading                // for another part
	refused                    // a Submit that the part's queue could not be given
)

// reports passes on what the queue of a part says of its work, as if uploads were a piece of the
// work that needs them, and downloads nothing.
type reports struct {
	part int

	mu    sync.Mutex
	watch func(gpu.Progress) // nil: nobody wants to know
	kinds [2]ordered         // of what is not urgent, and of what is
}

// ordered is the commands of one kind that a part's queue has.
type ordered struct {
	given    []purpose // and not ended, oldest first
	begun    bool      // the beginning of the work that comes next is reported
	uploadNS int64     // what was uploaded for it took
}

// from has a part's queue tell f.
func (r *reports) from(q gpu.Queue, f func(gpu.Progress)) {
	w, ok := q.(gpu.Watched)
	if !ok {
		return
	}
	r.mu.Lock()
	r.watch = f
	r.mu.Unlock()
	w.Watch(r.hear)
}

func (r *reports) kind(urgent bool) *ordered {
	if urgent {
		return &r.kinds[1]
	}
	return &r.kinds[0]
}

// add notes what the queue is about to be given, or, if it is refused, is not.
func (r *reports) add(urgent bool, p purpose) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.watch != nil {
		k := r.kind(urgent)
		k.given = append(k.given, p)
		r.skip(k, urgent)
	}
}

// takeBack notes that the queue has not taken what it was to be given last.
func (r *reports) takeBack(urgent bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.watch != nil {
		k := r.kind(urgent)
		k.given = k.given[:len(k.given)-1]
	}
}

// hear takes what the queue tells.
func (r *reports) hear(p gpu.Progress) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := r.kind(p.Urgent)
	is := k.given[0]
	p.Part = r.part
	if p.Working {
		if is != downloading && !k.begun {
			k.begun = true
			r.watch(p)
		}
		return
	}
	k.pop()
	switch is {
	case uploading:
		k.uploadNS += p.DeviceNS
	case computing:
		p.DeviceNS += k.uploadNS
		k.begun, k.uploadNS = false, 0
		r.watch(p)
	}
	r.skip(k, p.Urgent)
}

// skip reports work that the queue has not been given, as if it had taken no time, when its turn
// has come.
func (r *reports) skip(k *ordered, urgent bool) {
	for len(k.given) > 0 && k.given[0] == refused {
		k.pop()
		p := gpu.Progress{Part: r.part, Working: true, Urgent: urgent}
		if !k.begun {
			r.watch(p)
		}
		p.Working, p.DeviceNS = false, k.uploadNS
		k.begun, k.uploadNS = false, 0
		r.watch(p)
	}
}

// pop removes the oldest.
func (k *ordered) pop() {
	n := copy(k.given, k.given[1:]) // a few at most
	k.given = k.given[:n]
}
