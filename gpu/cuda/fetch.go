//go:build linux && (amd64 || arm64)

package cuda

import (
	"fmt"
	"runtime"
	"unsafe"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/gpu/launch"
)

// side is a stream that copies beside another one. The zero value has none yet.
type side struct {
	handle streamHandle
	fork   eventHandle                 // on the other stream: what the next copies come after
	join   [gpu.FetchLanes]eventHandle // on this one, behind the last copies of each lane
	joined [gpu.FetchLanes]bool        // join was recorded
}

var _ launch.Fetcher = (*stream)(nil)

// Fetch makes copies on a stream of their own, which waits for what came before.
func (s *stream) Fetch(lane int, copies []launch.MemoryCopy) error {
	x, err := s.transfer()
	defer runtime.UnlockOSThread()
	if err != nil {
		return err
	}
	return x.keep(s.fetch(lane, copies))
}

func (s *stream) fetch(lane int, copies []launch.MemoryCopy) error {
	b, side := s.b, &s.side
	if err := side.open(b); err != nil {
		return err
	}
	if err := b.check(b.d.eventRecord(side.fork, s.handle), "cuEventRecord", ""); err != nil {
		return err
	}
	if err := b.check(b.d.streamWait(side.handle, side.fork), "cuStreamWaitEvent", ""); err != nil {
		return err
	}
	for i := range copies {
		c := &copies[i]
		at, n := address(c.Dst.Address()+uint64(c.Offset)), uint64(len(c.Src))
		r := b.d.copyIn(at, unsafe.Pointer(unsafe.SliceData(c.Src)), n, side.handle)
		if r != success {
			doing := fmt.Sprintf("copying %d bytes to the device", n)
			return b.check(r, "cuMemcpyHtoDAsync_v2", doing)
		}
	}
	err := b.check(b.d.eventRecord(side.join[lane], side.handle), "cuEventRecord", "")
	side.joined[lane] = side.joined[lane] || err == nil
	return err
}

// open makes the stream and its events, the first time.
func (d *side) open(b *backend) error {
	if d.handle == 0 {
		r := b.d.streamCreate(&d.handle, streamNonBlocking)
		if err := b.check(r, "cuStreamCreate", ""); err != nil {
			return err
		}
	}
	for _, e := range d.events() {
		if *e != 0 {
			continue
		}
		if err := b.check(b.d.eventCreate(e, eventWithoutTime), "cuEventCreate", ""); err != nil {
			return err
		}
	}
	return nil
}

func (d *side) events() []*eventHandle {
	list := []*eventHandle{&d.fork}
	for i := range d.join {
		list = append(list, &d.join[i])
	}
	return list
}

// Fetched makes the stream wait for the last copies of a lane.
func (s *stream) Fetched(lane int) error {
	x, err := s.transfer()
	defer runtime.UnlockOSThread()
	if err != nil || !s.side.joined[lane] {
		return err
	}
	return x.keep(s.b.check(s.b.d.streamWait(s.handle, s.side.join[lane]), "cuStreamWaitEvent", ""))
}

// close waits for copies that nothing has waited for. The context is current.
func (d *side) close(b *backend) error {
	if d.handle == 0 {
		return nil
	}
	err := b.check(b.d.streamSync(d.handle), "cuStreamSynchronize", "")
	for _, e := range d.events() {
		if *e != 0 {
			b.d.eventDestroy(*e)
		}
	}
	if r := b.d.streamDestroy(d.handle); err == nil {
		err = b.check(r, "cuStreamDestroy_v2", "")
	}
	*d = side{}
	return err
}
