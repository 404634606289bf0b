package launch

import "github.com/moeflux/moeflux-actor/gpu"

// Fetcher is a Stream that copies beside its own work.
type Fetcher interface {
	Stream
	// Fetch makes copies from pinned memory when all work before is done, beside what comes later.
	Fetch(lane int, copies []MemoryCopy) error
	// Fetched has all later work wait for the last Fetch of a lane.
	Fetched(lane int) error
}

// MemoryCopy is bytes of pinned memory, and where they go.
type MemoryCopy struct {
	Dst    Memory
	Offset int
	Src    []byte
}

func (x *encoder) fetch(o *gpu.Fetch)     { x.transfer(o, doFetch) }
func (x *encoder) fetched(o *gpu.Fetched) { x.transfer(o, doFetched) }

func doFetch(x *encoder, s *step) error {
	o := s.op.(*gpu.Fetch)
	f, ok := x.stream.(Fetcher)
	if !ok {
		for i := range o.Copies {
			c := &o.Copies[i]
			if err := x.stream.CopyIn(memoryOf(c.Dst), c.Dst.Offset, c.Src); err != nil {
				return err
			}
		}
		return nil
	}
	list := x.lists.copies[:0]
	for i := range o.Copies {
		c := &o.Copies[i]
		list = append(list, MemoryCopy{memoryOf(c.Dst), c.Dst.Offset, c.Src})
	}
	x.lists.copies = list
	defer clear(list)
	return f.Fetch(o.Lane, list)
}

func doFetched(x *encoder, s *step) error {
	if f, ok := x.stream.(Fetcher); ok {
		return f.Fetched(s.op.(*gpu.Fetched).Lane)
	}
	return nil
}
