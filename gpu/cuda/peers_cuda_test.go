//go:build cuda && linux && (amd64 || arm64)

package cuda

import (
	"bytes"
	"os"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/gpu/split"
	"github.com/moeflux/moeflux-actor/internal/testenv"
)

// openPair makes one device of the first two GPUs. Without direct rows go by way of the host.
func openPair(tb testing.TB, direct bool) gpu.Split {
	tb.Helper()
	var parts []gpu.Device
	var backends []*backend
	for i := range 2 {
		d, err := Open(Config{Ordinal: i, Driver: os.Getenv(DriverVariable), Compiler: os.Getenv(CompilerVariable), CacheDir: os.Getenv("MOEFLUX_CUDA_CACHE")})
		if err != nil {
			for _, p := range parts {
				p.Close()
			}
			testenv.Missing(tb, err.Error())
		}
		parts, backends = append(parts, d), append(backends, d.b)
	}
	if !direct {
		backends[1].peers = map[int32]bool{backends[0].device: false}
	}
	d, err := split.New(parts...)
	must(tb, err)
	tb.Cleanup(func() { must(tb, d.Close()) })
	return d
}

// TestCUDAPeers takes rows of several sizes from one GPU to the other, directly and by way of the
// host: what the first has just written arrives, although nobody waits in between, and it takes no
// longer than it should.
func TestCUDAPeers(t *testing.T) {
	for _, direct := range []bool{true, false} {
		d := openPair(t, direct)
		q, err := d.NewQueue()
		must(t, err)
		for _, n := range []int{28 << 10, 900 << 10, 14 << 20} {
			var views [2]gpu.View
			for i, p := range d.Parts() {
				b, err := p.NewBuffer(n)
				must(t, err)
				defer b.Release()
				views[i].Buf = b
			}
			const rounds = 40
			sent, got := make([]byte, n), make([]byte, n)
			var took time.Duration
			for round := range rounds {
				for i := range sent {
					sent[i] = byte(i*3 + i>>8 + round)
				}
				var first, clearing, then gpu.Commands
				gpu.Encode(&first, gpu.Fill{Dst: views[0], Bytes: n})
				gpu.Encode(&first, gpu.Upload{Dst: views[0], Src: sent})
				clearing.Part = 1
				gpu.Encode(&clearing, gpu.Fill{Dst: views[1], Bytes: n})
				then.Part, then.Moves = 1, []gpu.Move{{Dst: views[1], Src: views[0], Bytes: n}}
				gpu.Encode(&then, gpu.Fill{Dst: views[1], Bytes: 1})
				began := time.Now()
				wait := []gpu.Ticket{}
				for _, c := range []*gpu.Commands{&clearing, &first, &then} {
					ticket, err := q.Submit(c)
					must(t, err)
					wait = append(wait, ticket)
				}
				waitFor(t, wait)
				took += time.Since(began)
				var out gpu.Commands
				out.Part = 1
				gpu.Encode(&out, gpu.Download{Src: views[1], Dst: got})
				ticket, err := q.Submit(&out)
				must(t, err)
				waitFor(t, []gpu.Ticket{ticket})
				if want := append([]byte{0}, sent[1:]...); !bytes.Equal(got, want) {
					t.Fatalf("direct %v, %d bytes, round %d: other bytes arrive", direct, n, round)
				}
			}
			t.Logf("direct %v: %d KiB up, over and marked in %v", direct, n>>10, took/rounds)
		}
		must(t, q.Close())
	}
}

func waitFor(t *testing.T, tickets []gpu.Ticket) {
	t.Helper()
	for _, ticket := range tickets {
		done := make(chan error, 1)
		ticket.OnDone(func(err error) { done <- err })
		must(t, <-done)
	}
}
