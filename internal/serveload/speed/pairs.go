package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/moeflux/moeflux-actor/internal/figures"
)

// way is how texts are asked for.
type way int

const (
	engine way = iota
	generate
	overHTTP
)

var wayNames = [...]string{"engine", "Generate", "HTTP"}

// speeds measures tokens a second of several texts at once, prints a line for each pair, and
// returns the share of HTTP in the engine's speed. Each way is the first in turn.
func (b *bed) speeds(ctx context.Context, out io.Writer) (figures.Spread, error) {
	ways := []way{engine, overHTTP}
	if b.o.generate {
		ways = []way{engine, generate, overHTTP}
	}
	fmt.Fprintf(out, "%8s", "tokens/s")
	for _, w := range ways {
		fmt.Fprintf(out, " %10s texts/step", wayNames[w])
	}
	fmt.Fprintf(out, " %14s\n", "HTTP/engine")
	var shares []float64
	for pair := range b.o.pairs {
		all := make(map[way]*measured)
		for i := range ways {
			w := ways[(pair+i)%len(ways)]
			var err error
			if all[w], err = b.measure(ctx, w, pair); err != nil {
				return figures.Spread{}, fmt.Errorf("%s: %w", wayNames[w], err)
			}
		}
		fmt.Fprintf(out, "%8d", pair+1)
		for _, w := range ways {
			if !slices.Equal(all[w].said, all[engine].said) {
				return figures.Spread{}, fmt.Errorf("%s says %q, the engine %q", wayNames[w], all[w].said, all[engine].said)
			}
			fmt.Fprintf(out, " %10.2f %10.1f", all[w].speed, all[w].abreast)
		}
		shares = append(shares, all[overHTTP].speed/all[engine].speed)
		fmt.Fprintf(out, " %14.3f\n", shares[pair])
	}
	return figures.SpreadOf(shares), nil
}

// measured is what several texts at once came to.
type measured struct {
	speed   float64  // tokens a second
	abreast float64  // texts in a step, the mean
	said    []string // by text
}

// measure measures one way with the texts of a pair.
func (b *bed) measure(ctx context.Context, w way, pair int) (*measured, error) {
	ask, within := b.generate, func(f func() error) error { return f() }
	switch w {
	case engine:
		return b.decode(ctx, pair)
	case overHTTP:
		ask, within = b.fetch, b.o.profiled
	}
	prompts := make([][]int32, b.o.texts)
	for i := range prompts {
		prompts[i] = b.prompt(b.o.texts*(1+pair)+i, b.o.prompt)
	}
	if _, _, err := together(ctx, ask, beginnings(prompts), readTokens); err != nil {
		return nil, err
	}
	var texts []*text
	var took time.Duration
	before, err := b.model.Engine().Stats(ctx)
	if err != nil {
		return nil, err
	}
	err = within(func() (err error) {
		texts, took, err = together(ctx, ask, prompts, b.o.tokens)
		return err
	})
	if err != nil {
		return nil, err
	}
	after, err := b.model.Engine().Stats(ctx)
	if err != nil {
		return nil, err
	}
	tokens := float64(b.o.texts * b.o.tokens)
	m := &measured{speed: tokens / took.Seconds(), abreast: tokens / float64(after.Steps-before.Steps)}
	for i, t := range texts {
		if unknown := len(prompts[i]) - t.known; unknown > 1 {
			return nil, fmt.Errorf("%d tokens of a prompt were read again", unknown)
		}
		m.said = append(m.said, t.said)
	}
	return m, nil
}

// decode has the engine decode as bench does.
func (b *bed) decode(ctx context.Context, pair int) (*measured, error) {
	t, err := b.trials.Run(ctx, nil, pair)
	if err != nil {
		return nil, err
	}
	m := &measured{speed: t.Decode.TokensPerSecond, abreast: float64(t.Decode.Tokens) / float64(t.Decode.Steps)}
	for ids := range slices.Chunk(t.Tokens, 1+t.GenTokens) { // the first follows the prompt, and one too many is known
		m.said = append(m.said, b.model.Tokenizer().Decode(ids[:t.GenTokens], true))
	}
	return m, nil
}

// readTokens are the new tokens of a text that is asked for to have its prompt read: with the
// second one, what is remembered of the prompt is there.
const readTokens = 2

// beginnings are prompts without their last tokens. Who has read one knows all of the prompt that
// can be known: the last token is computed in any case, and a recurrent state cannot go back by it.
func beginnings(prompts [][]int32) [][]int32 {
	all := make([][]int32, len(prompts))
	for i, ids := range prompts {
		all[i] = ids[:len(ids)-1]
	}
	return all
}

// firstTokens are the new tokens of a text whose first is awaited: one may be no text by itself.
const firstTokens = 8

// firsts measures how long the first text of a known prompt takes, in the process and over HTTP,
// and returns by how many milliseconds HTTP is later.
func (b *bed) firsts(ctx context.Context, out io.Writer) (figures.Spread, error) {
	var later, own, http []float64
	ids := b.prompt(0, b.o.known)
	if _, err := b.generate(ctx, ids[:len(ids)-1], readTokens); err != nil {
		return figures.Spread{}, err
	}
	for n := range b.o.firsts {
		var first [2]float64
		for i := range first {
			which := (n + i) % 2
			t, err := []asker{b.generate, b.fetch}[which](ctx, ids, firstTokens)
			if err != nil {
				return figures.Spread{}, err
			}
			if unknown := len(ids) - t.known; unknown > 1 {
				return figures.Spread{}, fmt.Errorf("%d tokens of the prompt were read again", unknown)
			}
			first[which] = float64(t.first) / float64(time.Millisecond)
		}
		own, http = append(own, first[0]), append(http, first[1])
		later = append(later, first[1]-first[0])
	}
	print := func(name string, all []float64) {
		s := figures.SpreadOf(all)
		fmt.Fprintf(out, "first text, %-9s %.2f ms (%.2f to %.2f)\n", name, s.Median, s.Min, s.Max)
	}
	fmt.Fprintln(out)
	print(wayNames[generate], own)
	print(wayNames[overHTTP], http)
	return figures.SpreadOf(later), nil
}
