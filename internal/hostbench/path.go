package main

import (
	"errors"
	"os"
	"slices"
	"time"

	"github.com/moeflux/moeflux-actor/tracing/analyse"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// path is where a token's time goes: medians over the decoded tokens.
type path struct {
	token                        time.Duration
	network, wait, read, compute time.Duration // of one layer
	here                         time.Duration // all else
	layers                       int           // that ask
	bytes                        int64         // of one layer, of the host with the most
}

// settled is the share of the tokens that count, from the end: before it connections are new.
const settled = 0.8

// pathOf reads a recording.
func pathOf(file string, row rowBytes) (*path, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	rec, err := record.ReadRecording(f)
	if err != nil {
		return nil, err
	}
	why, err := analyse.WhyTokens(rec, 0)
	if err != nil {
		return nil, err
	}
	tokens := slices.DeleteFunc(why.Tokens, func(t analyse.Token) bool { return t.Rows != 1 })
	tokens = tokens[len(tokens)-int(settled*float64(len(tokens))):]
	bytes, layers := asked(rec, row)
	if len(tokens) == 0 || layers == 0 {
		return nil, errors.New("no token asked a host; is the model larger than the engine's memory?")
	}
	p := &path{layers: layers, bytes: bytes}
	by := make(map[analyse.Cause][]time.Duration)
	var wall, here []time.Duration
	for i := range tokens {
		of := make(map[analyse.Cause]time.Duration)
		for _, s := range tokens[i].Causes {
			of[s.Cause] = time.Duration(s.NS)
		}
		rest := time.Duration(tokens[i].WallNS)
		for _, c := range []analyse.Cause{analyse.Network, analyse.HostWait, analyse.HostDisk, analyse.HostCompute} {
			by[c] = append(by[c], of[c]/time.Duration(layers))
			rest -= of[c]
		}
		wall, here = append(wall, time.Duration(tokens[i].WallNS)), append(here, rest)
	}
	p.token, p.here = middle(wall), middle(here)
	p.network, p.wait = middle(by[analyse.Network]), middle(by[analyse.HostWait])
	p.read, p.compute = middle(by[analyse.HostDisk]), middle(by[analyse.HostCompute])
	return p, nil
}

// rowBytes is the size of a row on its way to a host, and of an output on its way back.
type rowBytes struct {
	there, back int64
	sum         bool // of all that an ask wants
}

// of returns how many bytes a row takes there, and back with so many outputs.
func (r *rowBytes) of(outputs int64) int64 {
	if r.sum {
		outputs = 1
	}
	return r.there + outputs*r.back
}

// asked returns how many bytes the busiest host of a layer gets and sends, in the middle, and how
// many layers ask.
func asked(rec *record.Recording, row rowBytes) (bytes int64, layers int) {
	type key struct {
		step  uint64
		layer int32
	}
	most, of := make(map[key]int64), make(map[int32]bool)
	for i := range rec.Answers {
		a := &rec.Answers[i]
		k := key{a.Step, a.Layer}
		most[k] = max(most[k], row.of(int64(a.Uses)))
		of[a.Layer] = true
	}
	var all []int64
	for _, n := range most {
		all = append(all, n)
	}
	return middle(all), len(of)
}

func middle[T time.Duration | int64](of []T) T {
	if len(of) == 0 {
		return 0
	}
	slices.Sort(of)
	return of[len(of)/2]
}
