package analyse

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// Tokens under way in random spans that follow one another, compared with all tokens.
func TestUnderWay(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 1000 {
		tokens := make([]Token, r.IntN(12))
		for i := range tokens {
			tokens[i].FromNS, tokens[i].WallNS = r.Int64N(100), r.Int64N(60)
		}
		slices.SortFunc(tokens, func(a, b Token) int { return cmp.Compare(a.FromNS+a.WallNS, b.FromNS+b.WallNS) })
		way := underWay{tokens: tokens}
		for at := int64(0); at < 150; {
			s := span{at, at + 1 + r.Int64N(20)}
			at = s.to + r.Int64N(20)
			var want []int
			for i := range tokens {
				if tokens[i].FromNS < s.to && tokens[i].FromNS+tokens[i].WallNS >= s.from {
					want = append(want, i)
				}
			}
			if got := way.during(s); !slices.Equal(got, want) {
				t.Fatalf("during %v of %+v: %v, want %v", s, tokens, got, want)
			}
		}
	}
}

// TestDevicesBusy has a token computed by two devices, one after the other: each works while the
// other is idle.
func TestDevicesBusy(t *testing.T) {
	const text = `
step 1 100 300 seq=1 req=1 pos=7
req 1 100 100 300 seq=1 pos=7
msg sequencer EvalChunk 100 100 110
msg dispatch BeginLayer 110 110 120 step=1
dev Layers 120 120 180 step=1
dev Layers 120 180 200 step=1 layer=2 device=1
dev Head 120 200 290 step=1 layer=4 device=1
msg dispatch TicketDone 290 290 295 step=1 layer=4
msg sequencer LogitsReady 295 295 300 step=1 layer=4
`
	r := made(t, text)
	for _, borders := range [][]int{nil, {2}} {
		r.Meta.Engine.Borders = borders
		w, err := WhyTokens(r, 0)
		if err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprint(w.Device.BusyNS, w.Device.IdleNS)
		for _, d := range w.Devices {
			got += fmt.Sprintf("; %d %d", d.BusyNS, d.IdleNS)
			for _, c := range d.Idle {
				got += fmt.Sprintf(" %s %d", c.Cause, c.NS)
			}
		}
		want := "170000 30000"
		if borders != nil {
			want += "; 60000 140000 device 110000 stage 30000; 110000 90000 device 60000 stage 30000"
		}
		if got != want {
			t.Errorf("borders %v: %s, want %s", borders, got, want)
		}
	}
}
