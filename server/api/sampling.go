package api

import (
	"encoding/json"
	"math"
	"strconv"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/server/body"
)

// ReadSampling reads what OpenAI's APIs have in common, and what others call extensions.
func ReadSampling(o *body.Object, r *moeflux.Request) {
	s := &r.Sampling
	s.Temperature = o.Number("temperature", 0, 2)
	s.TopP = o.Number("top_p", 0, 1)
	s.TopK = o.Integer("top_k", 0, math.MaxInt32)
	s.MinP = o.Number("min_p", 0, 1)
	s.RepeatPenalty = o.Number("repeat_penalty", 0.01, 100)
	if p := o.Number("repetition_penalty", 0.01, 100); p != nil { // the same in other servers' words
		s.RepeatPenalty = p
	}
	if p := o.Number("presence_penalty", -2, 2); p != nil {
		s.PresencePenalty = *p
	}
	if p := o.Number("frequency_penalty", -2, 2); p != nil {
		s.FrequencyPenalty = *p
	}
	readSeed(o, s)
	readBias(o, s)
	r.Stop = ReadStop(o, "stop")
}

// readSeed reads any whole number, negative ones too, as clients send them.
func readSeed(o *body.Object, s *moeflux.Sampling) {
	var raw json.Number
	if !o.Value("seed", "a whole number", &raw) {
		return
	}
	if n, err := strconv.ParseInt(raw.String(), 10, 64); err == nil {
		s.Seed = new(uint64(n))
		return
	}
	n, err := strconv.ParseUint(raw.String(), 10, 64)
	if err != nil {
		o.Fail("seed", "seed must be a whole number of 64 bits")
		return
	}
	s.Seed = &n
}

func readBias(o *body.Object, s *moeflux.Sampling) {
	bias := o.Object("logit_bias")
	if bias == nil {
		return
	}
	if len(bias.Fields) > maxBias {
		o.Fail("logit_bias", "logit_bias has %d tokens; %d are allowed", len(bias.Fields), maxBias)
		return
	}
	s.LogitBias = make(map[int32]float64, len(bias.Fields))
	for name := range bias.Fields {
		id, err := strconv.ParseInt(name, 10, 32)
		if err != nil || id < 0 {
			o.Fail("logit_bias", "logit_bias: %q is not a token's number", name)
			return
		}
		if v := bias.Number(name, -100, 100); v != nil {
			s.LogitBias[int32(id)] = *v
		}
	}
}

// ReadStop reads a field that is a string or a list of strings.
func ReadStop(o *body.Object, name string) []string {
	if !o.Has(name) {
		return nil
	}
	var one string
	stops := []string{}
	if json.Unmarshal(o.Fields[name], &one) == nil {
		stops = append(stops, one)
	} else if !o.Value(name, "a string or a list of strings", &stops) {
		return nil
	}
	if len(stops) > maxStops {
		o.Fail(name, name+" has %d strings; %d are allowed", len(stops), maxStops)
		return nil
	}
	for _, s := range stops {
		if s == "" || len(s) > maxStopBytes {
			o.Fail(name, name+": a string must have from 1 to %d bytes", maxStopBytes)
			return nil
		}
	}
	return stops
}
