package server

import (
	"encoding/json"
	"math"
	"strconv"

	moeflux "github.com/moeflux/moeflux-actor"
)

// readSampling reads what OpenAI's APIs have in common, and what others call extensions.
func readSampling(o *object, r *moeflux.Request) {
	s := &r.Sampling
	s.Temperature = o.number("temperature", 0, 2)
	s.TopP = o.number("top_p", 0, 1)
	s.TopK = o.integer("top_k", 0, math.MaxInt32)
	s.MinP = o.number("min_p", 0, 1)
	s.RepeatPenalty = o.number("repeat_penalty", 0.01, 100)
	if p := o.number("repetition_penalty", 0.01, 100); p != nil { // the same in other servers' words
		s.RepeatPenalty = p
	}
	if p := o.number("presence_penalty", -2, 2); p != nil {
		s.PresencePenalty = *p
	}
	if p := o.number("frequency_penalty", -2, 2); p != nil {
		s.FrequencyPenalty = *p
	}
	readSeed(o, s)
	readBias(o, s)
	r.Stop = readStop(o, "stop")
}

// readSeed reads any whole number, negative ones too, as clients send them.
func readSeed(o *object, s *moeflux.Sampling) {
	var raw json.Number
	if !o.value("seed", "a whole number", &raw) {
		return
	}
	if n, err := strconv.ParseInt(raw.String(), 10, 64); err == nil {
		s.Seed = new(uint64(n))
		return
	}
	n, err := strconv.ParseUint(raw.String(), 10, 64)
	if err != nil {
		o.fail("seed", "seed must be a whole number of 64 bits")
		return
	}
	s.Seed = &n
}

func readBias(o *object, s *moeflux.Sampling) {
	bias := o.object("logit_bias")
	if bias == nil {
		return
	}
	if len(bias.fields) > maxBias {
		o.fail("logit_bias", "logit_bias has %d tokens; %d are allowed", len(bias.fields), maxBias)
		return
	}
	s.LogitBias = make(map[int32]float64, len(bias.fields))
	for name := range bias.fields {
		id, err := strconv.ParseInt(name, 10, 32)
		if err != nil || id < 0 {
			o.fail("logit_bias", "logit_bias: %q is not a token's number", name)
			return
		}
		if v := bias.number(name, -100, 100); v != nil {
			s.LogitBias[int32(id)] = *v
		}
	}
}

// readStop reads a field that is a string or a list of strings.
func readStop(o *object, name string) []string {
	if !o.has(name) {
		return nil
	}
	var one string
	stops := []string{}
	if json.Unmarshal(o.fields[name], &one) == nil {
		stops = append(stops, one)
	} else if !o.value(name, "a string or a list of strings", &stops) {
		return nil
	}
	if len(stops) > maxStops {
		o.fail(name, name+" has %d strings; %d are allowed", len(stops), maxStops)
		return nil
	}
	for _, s := range stops {
		if s == "" || len(s) > maxStopBytes {
			o.fail(name, name+": a string must have from 1 to %d bytes", maxStopBytes)
			return nil
		}
	}
	return stops
}
