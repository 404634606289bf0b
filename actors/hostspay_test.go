package actors_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/actors"
	expert "github.com/moeflux/moeflux-actor/actors/remote/host"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/internal/netdelay"
	"github.com/moeflux/moeflux-actor/io/readpool"
)

// TestHostsWherePaying plants a network that is far slower than the disk, a disk that is far slower
// than the network, and a delay that no prompt is worth. A prompt asks its host only in the second
// case. Decoding asks in all of them, and the bits are the same.
func TestHostsWherePaying(t *testing.T) {
	dir := fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0)
	base := open(t, actors.Config{Model: dir, ExpertIO: actors.ExpertIOBuffered})
	text := prompt(1, 40, base.Model().VocabSize)
	const tokens = 2
	want, err := transcript(sequence(t, base), text, tokens)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		link netdelay.Link
		disk time.Duration // of a read
		away bool          // a prompt asks the host
	}{
		"slow network": {netdelay.Link{Rate: 8e6}, 0, false}, // a row there and back takes 0.5 ms
		"slow disk":    {netdelay.Link{}, 2 * time.Millisecond, true},
		"long way":     {netdelay.Link{Delay: 20 * time.Millisecond}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := netdelay.New(expertHost(t, expert.Config{Model: dir}), tc.link)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			cfg := asksHosts(dir, p.Addr())
			cfg.HostPatience = 20 * time.Second
			e := open(t, actors.WithReads(cfg, func(s readpool.Source) readpool.Source { return slowSource{s, tc.disk} }))
			connected(t, e, 1)
			var away, misses [2]int64 // of a prompt, and of tokens
			for round := range 2 {    // how fast the disk is, is known after the first
				s := sequence(t, e)
				var got [][]float32
				for i, more := range []int{0, tokens - 1} {
					ids := text
					if i > 0 {
						ids = []int32{argmax(got[0])}
					}
					before := statsOf(t, e)
					part, err := transcript(s, ids, more)
					if err != nil {
						t.Fatal(err)
					}
					got = append(got, part...)
					after := statsOf(t, e)
					away[i], misses[i] = 0, 0
					for l := range after.Layers {
						away[i] += after.Layers[l].Away - before.Layers[l].Away
						misses[i] += after.Layers[l].Misses - before.Layers[l].Misses
					}
				}
				sameLogits(t, got, want)
				if round == 0 {
					continue
				}
				t.Logf("of %v uses that were not in memory, in a prompt and in tokens, the host has computed %v", misses, away)
				if asked := away[0] > 0; asked != tc.away || 2*away[0] < misses[0] && tc.away || misses[0] == 0 {
					t.Errorf("of %d uses of a prompt the host has computed %d", misses[0], away[0])
				}
				if 2*away[1] < misses[1] || misses[1] == 0 {
					t.Errorf("of %d uses of tokens the host has computed %d", misses[1], away[1])
				}
			}
		})
	}
}

// noDisk is a disk that reads nothing.
type noDisk struct{ readpool.Source }

func (noDisk) ReadExpert(int, int, []byte) error { return syscall.EIO }

// TestHostsWithoutDisk has hosts compute what the disk here fails to read: texts are as ever.
func TestHostsWithoutDisk(t *testing.T) {
	dir := fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0)
	base := open(t, actors.Config{Model: dir, ExpertIO: actors.ExpertIOBuffered})
	text := prompt(1, 40, base.Model().VocabSize)
	want, err := transcript(sequence(t, base), text, 8)
	if err != nil {
		t.Fatal(err)
	}
	e := open(t, actors.WithReads(asksHosts(dir, expertHost(t, expert.Config{Model: dir})), func(s readpool.Source) readpool.Source { return noDisk{s} }))
	connected(t, e, 1)
	for range 3 {
		got, err := transcript(sequence(t, e), text, 8)
		if err != nil {
			t.Fatal(err)
		}
		sameLogits(t, got, want)
	}
	if s := statsOf(t, e); s.ReadErrors == 0 {
		t.Error("no read has failed")
	}
}
