//go:build linux && (amd64 || arm64)

package cuda

import (
	"bytes"
	"testing"

	"github.com/moeflux/moeflux-actor/gpu"
)

// fetchOver clears a buffer, fetches bytes into it and downloads them.
func fetchOver(q gpu.Queue, to gpu.View, src, got []byte) error {
	var c gpu.Commands
	gpu.Encode(&c, gpu.Fill{Dst: to, Bytes: len(src)})
	copies := []gpu.HostCopy{{Dst: to, Src: src[:5]}, {Dst: to.At(5), Src: src[5:]}}
	gpu.Encode(&c, gpu.Fetch{Lane: 1, Copies: copies})
	gpu.Encode(&c, gpu.Fetched{Lane: 0})
	gpu.Encode(&c, gpu.Fetched{Lane: 1})
	gpu.Encode(&c, gpu.Download{Src: to, Dst: got})
	t, err := q.Submit(&c)
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	t.OnDone(func(err error) { done <- err })
	return <-done
}

// TestFetch has copies come after what is before them and before what is after them, whether the
// GPU makes them as early or as late as it may.
func TestFetch(t *testing.T) {
	for _, eager := range []bool{false, true} {
		d, f := openFakeDevice(t)
		q := newQueue(t, d)
		f.eager = eager
		buf, err := d.NewBuffer(100)
		to := gpu.View{Buf: newBuffer(t, buf, err)}
		host, err := d.NewPinned(100)
		src := newBuffer(t, host, err).Bytes()
		for i := range 3 {
			copy(src, bytes.Repeat([]byte{byte(i + 1)}, 100))
			got := make([]byte, 100)
			if err := fetchOver(q, to, src, got); err != nil || !bytes.Equal(got, src) {
				t.Errorf("as early as possible %v, round %d: % x, %v", eager, i, got[:8], err)
			}
		}
		if n := f.counts["cuStreamCreate"]; n != 3 {
			t.Errorf("%d streams, want those of the device, of the queue and of its copies", n)
		}
	}
}

// TestFetchFails has what a fetch needs fail: the ticket says so, and the next one goes well.
func TestFetchFails(t *testing.T) {
	for _, function := range []string{
		"cuStreamCreate", "cuEventRecord", "cuStreamWaitEvent", "cuMemcpyHtoDAsync_v2",
	} {
		d, f := openFakeDevice(t)
		q := newQueue(t, d)
		buf, err := d.NewBuffer(64)
		to := gpu.View{Buf: newBuffer(t, buf, err)}
		host, err := d.NewPinned(64)
		src, got := newBuffer(t, host, err).Bytes(), make([]byte, 64)
		f.fail(function, 1)
		if err := fetchOver(q, to, src, got); err == nil {
			t.Errorf("%s fails, and nobody hears of it", function)
		}
		must(t, fetchOver(q, to, src, got))
		if !bytes.Equal(got, src) {
			t.Errorf("after %s has failed other bytes arrive", function)
		}
	}
}
