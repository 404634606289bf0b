package whatif

import "testing"

// company is the speed of some texts at once, in tokens a second.
func (w world) company(t *testing.T, texts int) float64 {
	t.Helper()
	w.texts, w.at = texts, texts
	_, is := w.run(t, Settings{})
	return is.DecodeRate
}

// Texts that decode with like pace find into shared steps, whenever they begin and however long
// their callers take: where they took turns, two were no quicker than one.
func TestTextsTravelTogether(t *testing.T) {
	for seed := range uint64(4) {
		for _, c := range []struct {
			thinksNS int64
			eachNS   float64 // of the disk
		}{{30_000, 50_000}, {30_000, 2_000_000}, {1_000_000, 50_000}, {1_000_000, 500_000}} {
			w := smallWorld()
			w.seed, w.decode, w.rows, w.thinksNS, w.disk.Each = 100+seed, 60, 8, c.thinksNS, c.eachNS
			w.meta.Engine.Slots = 150
			alone := w.company(t, 1)
			for texts, least := range map[int]float64{2: 1.25, 4: 1.8, 16: 3.5} {
				if rate := w.company(t, texts); rate < least*alone {
					t.Errorf("seed %d, %+v: %d texts have %.0f tokens/s, one has %.0f", seed, c, texts, rate, alone)
				}
			}
		}
	}
}

// A text that needs nothing from the disk is not kept to the pace of one that waits for it all the
// time.
func TestUnlikeTextsTravelApart(t *testing.T) {
	w := smallWorld()
	e := &w.meta.Engine
	e.LastToken, e.NextGate, e.Slots, w.disk = false, false, 40, diskLaw{4_000_000, 0}
	w.at, w.texts, w.prompts, w.still, w.decode = 2, 2, []int{1, 1}, []bool{false, true}, 200
	rec, _ := w.run(t, Settings{})
	var ended [3]int64 // by text
	for _, r := range rec.Requests {
		ended[r.Seq] = max(ended[r.Seq], r.EndedNS)
	}
	if ended[2] > ended[1]*3/4 {
		t.Errorf("a text that reads nothing ends after %d ms, one that reads after %d", ended[2]/1e6, ended[1]/1e6)
	}
}

// What prompts have guessed wrongly does not keep the slots from texts that decode. Sixteen texts
// need most of the slots in each step, so what they miss for want of slots keeps the disk busy, and
// it never comes to the guesses of prompts.
func TestWrongGuessesAreRecalled(t *testing.T) {
	for _, thinksNS := range []int64{30_000, 1_000_000} {
		var rate [2]float64 // without and with reading ahead
		for ahead := range rate {
			for seed := range uint64(3) {
				w := smallWorld()
				w.seed, w.decode, w.rows, w.thinksNS, w.disk.Each = 100+seed, 80, 8, thinksNS, 2_000_000
				w.meta.Engine.Slots, w.texts, w.at = 100, 16, 16
				w.meta.Engine.LastToken, w.meta.Engine.NextGate = ahead == 1, ahead == 1
				_, is := w.run(t, Settings{})
				rate[ahead] += is.DecodeRate / 3
			}
		}
		t.Logf("callers that think for %d µs: %.0f tokens/s, %.0f if nothing is read ahead", thinksNS/1000, rate[1], rate[0])
		if rate[1] < 0.9*rate[0] {
			t.Errorf("callers that think for %d µs: %.0f tokens/s, %.0f if nothing is read ahead", thinksNS/1000, rate[1], rate[0])
		}
	}
}
