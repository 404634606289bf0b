package server

import (
	"strings"

	moeflux "github.com/moeflux/moeflux-actor"
)

// logprob is a token and how likely it was.
type logprob struct {
	Token   string    `json:"token"`
	LogProb float64   `json:"logprob"`
	Bytes   []int     `json:"bytes"`
	Top     []logprob `json:"top_logprobs,omitzero"`
}

// logprobOf returns how likely a token and its alternatives were.
func logprobOf(t *moeflux.Token) logprob {
	p := logprob{Token: strings.ToValidUTF8(string(t.Bytes), "\uFFFD"), LogProb: t.LogProb, Bytes: numbers(t.Bytes)}
	p.Top = make([]logprob, len(t.Top))
	for i := range t.Top {
		p.Top[i] = logprobOf(&t.Top[i])
		p.Top[i].Top = nil
	}
	return p
}

// numbers returns bytes as JSON numbers.
func numbers(b []byte) []int {
	n := make([]int, len(b))
	for i, c := range b {
		n[i] = int(c)
	}
	return n
}
