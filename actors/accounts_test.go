package actors_test

import (
	"context"
	"sync"
	"testing"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/stages"
)

// TestAccounts has texts decode side by side, and compares their accounts with what the engine
// counts elsewhere: reads by their layers, picks by their routers, time by the device's queue.
func TestAccounts(t *testing.T) {
	model := fixtures.Packed(t, fixtures.Qwen3MoEQ4, 0)
	for name, cfg := range map[string]actors.Config{
		"streamed": {Model: model, ExpertIO: actors.ExpertIOBuffered, ExpertMemory: 64 << 10},
		"mapped":   {Model: model, ExpertIO: actors.ExpertIOMmap, Resident: actors.ResidentOff},
		"resident": {Model: model, ExpertIO: actors.ExpertIOMmap},
	} {
		t.Run(name, func(t *testing.T) {
			e := open(t, cfg)
			const texts, decoded = 3, 9
			var sum actors.Account
			var together sync.WaitGroup
			sequences := make([]*actors.Sequence, texts)
			for i := range sequences {
				sequences[i] = sequence(t, e)
			}
			for i, s := range sequences {
				together.Go(func() {
					if _, err := greedy(s, []int32{1, 2, 3, int32(4 + i)}, 1+decoded); err != nil {
						t.Error(err)
					}
				})
			}
			together.Wait()
			resumed := sequence(t, e)
			if n, err := resumed.Resume(context.Background(), []int32{1, 2, 3, 4, 5}); err != nil || n != 4 {
				t.Fatalf("resumed %d tokens, error %v", n, err)
			}
			for _, s := range append(sequences, resumed) {
				d, err := s.Describe(context.Background())
				if err != nil {
					t.Fatal(err)
				}
				if a := d.Account; s != resumed && (a.Requests != 1+decoded || a.Read != 4+decoded || a.Generated != 1+decoded || a.DeviceNS <= 0 || a.TotalNS < a.DeviceNS/texts) {
					t.Errorf("a text of 4 tokens and %d more has %+v", decoded, a)
				}
				sum.Add(&d.Account)
			}
			st, err := e.Stats(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if sum != st.Accounts.Requests {
				t.Errorf("the texts have\n%+v, the engine says\n%+v", sum, st.Accounts.Requests)
			}
			compareCosts(t, st, e.Info().SlotBytes)
		})
	}
}

// compareCosts compares accounts with the figures that are counted elsewhere.
func compareCosts(t *testing.T, st *actors.Stats, record int) {
	t.Helper()
	all := st.Accounts.Requests.Cost
	all.Add(&st.Accounts.Nobody)
	var read, ahead, picks, hits int64
	for i := range st.Layers {
		l := &st.Layers[i]
		read, ahead, hits = read+l.BytesRead, ahead+l.BytesAhead, hits+l.Hits
		for _, n := range l.Uses {
			picks += n
		}
	}
	if got := all.HostBytes + all.DiskBytes; got != read {
		t.Errorf("%d bytes are charged, %d were read", got, read)
	}
	if want := hits * int64(record); read == 0 && all.SlotBytes != want {
		t.Errorf("%d bytes in slots are charged, %d experts of %d bytes were found there", all.SlotBytes, hits, record)
	}
	if all.AheadBytes != ahead {
		t.Errorf("%d bytes read ahead are charged, there were %d", all.AheadBytes, ahead)
	}
	if got := all.Hit + all.Late + all.Missed; got != picks || picks == 0 {
		t.Errorf("%d picks are charged, the routers count %d", got, picks)
	}
	if all.DeviceNS != st.ComputeNS || all.DiskWaitNS != st.DiskWaitNS {
		t.Errorf("%d ns of the device and %d of waiting are charged, want %d and %d", all.DeviceNS, all.DiskWaitNS, st.ComputeNS, st.DiskWaitNS)
	}
}

// TestAccountOfAChunk holds that a chunk's account comes with its answer.
func TestAccountOfAChunk(t *testing.T) {
	e := open(t, actors.Config{Model: fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0), ExpertIO: actors.ExpertIOBuffered, Prefetch: actors.PrefetchOff})
	s := sequence(t, e)
	r, err := s.EvalChunk(context.Background(), actors.Chunk{Tokens: []int32{5}, Logits: stages.NoLogits, Routing: true})
	if err != nil {
		t.Fatal(err)
	}
	a, i := r.Account, e.Info()
	if a.Requests != 1 || a.Read != 1 || a.Generated != 0 || a.Hit+a.Late+a.Missed != int64(len(r.Picks)) || a.QueueNS < 0 || a.QueueNS > a.TotalNS {
		t.Errorf("a token without logits has %+v, and %d picks", a, len(r.Picks))
	}
	if want := a.Missed * int64(i.SlotBytes); a.DiskBytes+a.SlotBytes < want || a.HostBytes != 0 || a.AheadBytes != 0 {
		t.Errorf("%d picks missed, of %d bytes each: %+v", a.Missed, i.SlotBytes, a)
	}
}
