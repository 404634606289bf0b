//go:build linux && (amd64 || arm64)

package cuda

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"github.com/moeflux/moeflux-actor/gpu/launch"
)

// peerAlready is the driver's answer where one context reaches the other already.
const peerAlready result = 704

var _ launch.PeerStream = (*stream)(nil)

// Reaches reports whether memory of another stream's GPU can be copied to this one's without the
// host. The first time that is tried: not every machine keeps what its driver promises.
func (s *stream) Reaches(from launch.Stream) bool {
	o, ok := from.(*stream)
	if !ok {
		return false
	}
	b := s.b
	b.mu.Lock()
	reached, known := b.peers[o.b.device]
	b.mu.Unlock()
	if known {
		return reached
	}
	err := s.tryPeer(o)
	if err != nil {
		b.log.Warn("copies between two GPUs go by way of the host", "from", o.b.name, "to", b.name, "why", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.peers == nil {
		b.peers = map[int32]bool{}
	}
	b.peers[o.b.device] = err == nil
	return err == nil
}

// tryPeer makes the memory of another GPU reachable and copies some bytes.
func (s *stream) tryPeer(o *stream) (err error) {
	b := s.b
	if o.b == b || o.b.device == b.device {
		return errors.New("they are one GPU")
	}
	var can int32
	if err := b.check(b.d.canPeer(&can, b.device, o.b.device), "cuDeviceCanAccessPeer", b.name); err != nil {
		return err
	}
	if can == 0 {
		return errors.New("the driver says that the one does not reach the other")
	}
	unbind, err := b.bind()
	if err != nil {
		return err
	}
	r := b.d.enablePeer(o.b.context)
	unbind()
	if r != peerAlready && r != success {
		return b.check(r, "cuCtxEnablePeerAccess", o.b.name)
	}
	const n = 4096
	theirs, err := o.b.newMemory(n)
	if err != nil {
		return err
	}
	defer theirs.Release()
	ours, err := b.newMemory(n)
	if err != nil {
		return err
	}
	defer ours.Release()
	want, got := make([]byte, n), make([]byte, n)
	for i := range want {
		want[i] = byte(i*7 + 1)
	}
	if err := o.wait(func() error { return o.CopyIn(theirs, 0, want) }); err != nil {
		return err
	}
	if err := s.wait(func() error {
		err := s.Receive(o, []launch.PeerCopy{{Dst: ours, Src: theirs, Bytes: n}})
		if err == nil {
			err = s.CopyOut(got, ours, 0)
		}
		return err
	}); err != nil {
		return err
	}
	if !bytes.Equal(got, want) {
		return errors.New("a copy arrived with other bytes")
	}
	return nil
}

// wait gives the stream work and waits for it.
func (s *stream) wait(give func() error) error {
	failed := give()
	done := make(chan error, 1)
	s.Commit(func(_ int64, err error) { done <- err })
	return errors.Join(failed, <-done)
}

// Receive makes the stream wait for another GPU's and copies from there. Launches that were kept
// back went to the stream with the last Commit.
func (s *stream) Receive(from launch.Stream, copies []launch.PeerCopy) error {
	o := from.(*stream)
	if err := o.recordFence(); err != nil {
		return err
	}
	if err := s.awaitFence(o); err != nil {
		return err
	}
	x, err := s.transfer()
	defer runtime.UnlockOSThread()
	if err != nil {
		return err
	}
	for _, c := range copies {
		to, at := address(c.Dst.Address()+uint64(c.DstOffset)), address(c.Src.Address()+uint64(c.SrcOffset))
		r := s.b.d.copyPeer(to, s.b.context, at, o.b.context, uint64(c.Bytes), s.handle)
		if r != success {
			return x.keep(s.b.check(r, "cuMemcpyPeerAsync", fmt.Sprintf("copying %d bytes from %s", c.Bytes, o.b.name)))
		}
	}
	return nil
}

// recordFence has the stream's fence come after all that it was given so far.
func (s *stream) recordFence() error {
	unbind, err := s.b.bind()
	if err != nil {
		return err
	}
	defer unbind()
	if s.fence == 0 {
		if err := s.b.check(s.b.d.eventCreate(&s.fence, eventWithoutTime), "cuEventCreate", ""); err != nil {
			return err
		}
	}
	return s.b.check(s.b.d.eventRecord(s.fence, s.handle), "cuEventRecord", "")
}

// awaitFence makes the stream wait for another one's fence, as it is recorded now. That is no part
// of a batch, so that its time does not count as work.
func (s *stream) awaitFence(o *stream) error {
	unbind, err := s.b.bind()
	if err != nil {
		return err
	}
	defer unbind()
	return s.b.check(s.b.d.streamWait(s.handle, o.fence), "cuStreamWaitEvent", "waiting for "+o.b.name)
}

// bindPeers finds what several GPUs need.
func (d *driver) bindPeers(s *symbols) {
	can, enable, copyPeer, wait := s.proc("cuDeviceCanAccessPeer"), s.proc("cuCtxEnablePeerAccess"), s.proc("cuMemcpyPeerAsync"), s.quick("cuStreamWaitEvent")
	d.canPeer = func(v *int32, dev, peer int32) result {
		return can.call(uintptr(unsafe.Pointer(v)), uintptr(dev), uintptr(peer))
	}
	d.enablePeer = func(peer contextHandle) result { return enable.call(uintptr(peer), 0) }
	d.copyPeer = func(dst address, to contextHandle, src address, from contextHandle, n uint64, st streamHandle) result {
		return copyPeer.call(uintptr(dst), uintptr(to), uintptr(src), uintptr(from), uintptr(n), uintptr(st))
	}
	d.streamWait = func(st streamHandle, e eventHandle) result { return wait.call(uintptr(st), uintptr(e), 0, 0) }
}
