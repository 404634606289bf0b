package stagetest_test

import (
	"fmt"
	"maps"
)

// hang is a time in which no read from the disk ends. It lasts until everybody has an answer who
// waited when it began.
type hang struct {
	from   int // the event at which it begins; 0: never
	on     bool
	caught map[*talker]uint64 // their requests
}

// hanging begins and ends the time in which the disk hangs.
func (x *rough) hanging() {
	h := &x.hang
	if !h.on && h.from > 0 && x.Events >= h.from {
		h.on, h.caught = true, map[*talker]uint64{}
		for _, t := range x.talkers {
			if t.request != 0 {
				h.caught[t] = t.request
			}
		}
	}
	if !h.on {
		return
	}
	maps.DeleteFunc(h.caught, func(t *talker, request uint64) bool { return t.request != request })
	switch {
	case len(h.caught) == 0:
		h.on, h.from = false, 0
		x.counts["hangs"]++
	case x.Events > h.from+20_000:
		x.problem = fmt.Errorf("%d callers wait for a disk that hangs", len(h.caught))
	}
}
