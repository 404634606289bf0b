package sample

import (
	"errors"
	"math"
	"testing"
)

func FuzzNext(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8}, 0.8, 3, 0.9, 0.05, 1.1, 0.5, 0.2, int32(1), -100.0, uint64(1))
	// NaN, -Inf
	f.Add([]byte{0, 0, 0xc0, 0x7f, 0, 0, 0x80, 0xff}, 1.0, 0, 0.0, 0.0, 0.0, 0.0, 0.0, int32(0), 0.0, uint64(2))
	f.Add([]byte{}, 0.0, 0, 0.0, 0.0, 0.0, 0.0, 0.0, int32(-1), 1.0, uint64(0))
	f.Add([]byte{0xff, 0xff, 0x7f, 0x7f, 0xff, 0xff, 0x7f, 0xff, 0, 0, 0, 0}, 1e300, 2, 0.5, 0.5, 100.0, 2.0, -2.0, int32(2), 100.0, uint64(3))
	f.Fuzz(func(t *testing.T, raw []byte, temp float64, topK int, topP, minP, repeat, presence, frequency float64, biased int32, bias float64, seed uint64) {
		var logits []float32
		for ; len(raw) >= 4; raw = raw[4:] {
			logits = append(logits, math.Float32frombits(uint32(raw[0])|uint32(raw[1])<<8|uint32(raw[2])<<16|uint32(raw[3])<<24))
		}
		o := Options{
			Temperature: temp, TopK: topK, TopP: topP, MinP: minP, RepeatPenalty: repeat, PresencePenalty: presence, FrequencyPenalty: frequency,
			LogitBias: map[int32]float64{biased: bias}, Seed: seed,
		}
		s := New(o)
		text := []int32{0, 0}
		got, err := s.Next(logits, text, text)
		if err != nil {
			var bad *LogitError
			if errors.As(err, &bad) && !(logits[bad.Token] != logits[bad.Token] || logits[bad.Token] > math.MaxFloat32) {
				t.Errorf("error %v, logits %v", err, logits)
			}
			return
		}
		if got < 0 || int(got) >= len(logits) || math.IsInf(float64(logits[got]), 0) || logits[got] != logits[got] || got == biased && bias == ExcludeBias {
			t.Errorf("%+v: token %d of logits %v", o, got, logits)
		}
		if p, err := s.LogProbs(logits, got, 3); err != nil || !(p.Chosen.LogProb <= 1e-9) || len(p.Top) == 0 {
			t.Errorf("log-probabilities %+v, %v of token %d, logits %v", p, err, got, logits)
		}
	})
}
