package api

import (
	"strings"

	moeflux "github.com/moeflux/moeflux-actor"
)

// LogProb is a token and how likely it was.
type LogProb struct {
	Token   string    `json:"token"`
	LogProb float64   `json:"logprob"`
	Bytes   []int     `json:"bytes"`
	Top     []LogProb `json:"top_logprobs,omitzero"`
}

// LogProbOf returns how likely a token and its alternatives were.
func LogProbOf(t *moeflux.Token) LogProb {
	p := LogProb{Token: strings.ToValidUTF8(string(t.Bytes), "\uFFFD"), LogProb: t.LogProb, Bytes: Numbers(t.Bytes)}
	p.Top = make([]LogProb, len(t.Top))
	for i := range t.Top {
		p.Top[i] = LogProbOf(&t.Top[i])
		p.Top[i].Top = nil
	}
	return p
}

// Numbers returns bytes as JSON numbers.
func Numbers(b []byte) []int {
	n := make([]int, len(b))
	for i, c := range b {
		n[i] = int(c)
	}
	return n
}
