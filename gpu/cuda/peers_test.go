//go:build linux && (amd64 || arm64)

package cuda

import (
	"bytes"
	"testing"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/gpu/launch"
	"github.com/moeflux/moeflux-actor/gpu/split"
)

// openFakePair returns one device of two GPUs of a fake driver.
func openFakePair(t *testing.T, set func(*fake)) (gpu.Split, *fake) {
	t.Helper()
	f := newFake(t)
	f.gpus = 2
	set(f)
	var parts []gpu.Device
	for i := range 2 {
		b, err := newBackend(Config{Ordinal: i}, f.driver(), func(int) (*compiler, error) { return fakeCompiler(new(int)), nil })
		must(t, err)
		l, err := launch.New(b)
		must(t, err)
		parts = append(parts, &Device{l, b})
	}
	d, err := split.New(parts...)
	must(t, err)
	t.Cleanup(func() {
		must(t, d.Close())
		f.rest()
	})
	return d, f
}

// TestPeers brings bytes from one GPU to another: directly, where that is possible, and by way of
// the host, where the driver refuses or what arrives is wrong. The other GPU waits for the first.
func TestPeers(t *testing.T) {
	for _, c := range []struct {
		name   string
		set    func(*fake)
		direct int // copies, with the one that tries it
	}{
		{"direct", func(*fake) {}, 1 + 3},
		{"refused", func(f *fake) { f.peers = 0 }, 0},
		{"not enabled", func(f *fake) { f.fails["cuCtxEnablePeerAccess"] = 217 }, 0},
		{"wrong bytes", func(f *fake) { f.spoils = func(b []byte) { b[len(b)-1]++ } }, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, f := openFakePair(t, c.set)
			q := newQueue(t, d)
			const n = 3000
			buffer := func(part int) gpu.View {
				b, err := d.Parts()[part].NewBuffer(n)
				return gpu.View{Buf: newBuffer(t, b, err)}
			}
			from, to := buffer(0), buffer(1)
			done, want, got := make(chan error, 6), make([][]byte, 3), make([][]byte, 3)
			submit := func(c *gpu.Commands) {
				ticket, err := q.Submit(c)
				must(t, err)
				ticket.OnDone(func(err error) { done <- err })
			}
			for i := range want {
				want[i], got[i] = bytes.Repeat([]byte{byte(i + 1)}, n), make([]byte, n)
				var first, then gpu.Commands
				gpu.Encode(&first, gpu.Upload{Dst: from, Src: want[i]})
				submit(&first)
				then.Part, then.Moves = 1, []gpu.Move{{Dst: to, Src: from, Bytes: n}}
				gpu.Encode(&then, gpu.Download{Src: to, Dst: got[i]})
				submit(&then)
				for range 2 { // what is moved stays until it is there
					must(t, <-done)
				}
				if !bytes.Equal(got[i], want[i]) {
					t.Errorf("round %d: other bytes arrive", i)
				}
			}
			if n := f.counts["cuMemcpyPeerAsync"]; n != c.direct {
				t.Errorf("%d copies between the GPUs, want %d", n, c.direct)
			}
		})
	}
}

// TestPeerFails has what a move needs fail: the Submit or its ticket says so, and the next one goes
// well.
func TestPeerFails(t *testing.T) {
	for _, function := range []string{"cuEventRecord", "cuStreamWaitEvent", "cuMemcpyPeerAsync"} {
		d, f := openFakePair(t, func(*fake) {})
		q := newQueue(t, d)
		var views [2]gpu.View
		for i := range views {
			b, err := d.Parts()[i].NewBuffer(64)
			views[i].Buf = newBuffer(t, b, err)
		}
		got := make([]byte, 64)
		try := func() error {
			var c gpu.Commands
			c.Part, c.Moves = 1, []gpu.Move{{Dst: views[1], Src: views[0], Bytes: 64}}
			gpu.Encode(&c, gpu.Download{Src: views[1], Dst: got})
			ticket, err := q.Submit(&c)
			if err != nil {
				return err
			}
			done := make(chan error, 1)
			ticket.OnDone(func(err error) { done <- err })
			return <-done
		}
		f.fail(function, 1)
		if err := try(); err == nil {
			t.Errorf("%s fails, and nobody hears of it", function)
		}
		must(t, try())
	}
}
