package main

import (
	"context"
	"fmt"
	"time"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/stages/sample"
)

// runResult is what run --json prints.
type runResult struct {
	Text       string            `json:"text"`
	PromptIDs  []int32           `json:"prompt_ids"`
	NewIDs     []int32           `json:"new_ids"` // up to the end of the stop string, if one was found
	StopReason actors.StopReason `json:"stop_reason"`
	Stats      *runFigures       `json:"stats"`
}

// The reasons that the engine does not know of.
const (
	stopString      actors.StopReason = "stop" // a --stop text came
	stopInterrupted actors.StopReason = "interrupted"
)

// runFigures are the speeds and counts of one run. A speed is 0 where nothing was measured.
type runFigures struct {
	PromptTokens          int     `json:"prompt_tokens"`
	PromptSeconds         float64 `json:"prompt_seconds"`
	PromptTokensPerSecond float64 `json:"prompt_tokens_per_second"`

	// The first new token comes from the prompt's own logits, so that decode_tokens is one less than the new ids.
	DecodeTokens          int     `json:"decode_tokens"`
	DecodeSeconds         float64 `json:"decode_seconds"`
	DecodeTokensPerSecond float64 `json:"decode_tokens_per_second"`

	TimeToFirstTokenSeconds float64 `json:"time_to_first_token_seconds"` // from the start of the process; 0 if there was none

	ExpertHits    int64   `json:"expert_hits"`
	ExpertMisses  int64   `json:"expert_misses"`
	ExpertHitRate float64 `json:"expert_hit_rate"` // 0 to 1; 0 if no expert was used
	BytesRead     int64   `json:"bytes_read"`

	Seed *uint64 `json:"seed"` // null if greedy
}

// runStats gathers the figures after the text has ended.
func runStats(ctx context.Context, e *actors.Engine, c *runClock, r *runResult, o sample.Options) (*runFigures, error) {
	counts, err := e.Stats(ctx)
	if err != nil {
		return nil, err
	}
	f := &runFigures{PromptTokens: len(r.PromptIDs), DecodeTokens: max(0, len(r.NewIDs)-1)}
	f.PromptSeconds, f.PromptTokensPerSecond = speed(f.PromptTokens, c.promptStart, c.promptEnd)
	f.DecodeSeconds, f.DecodeTokensPerSecond = speed(f.DecodeTokens, c.firstToken, c.lastToken)
	if !c.firstToken.IsZero() {
		f.TimeToFirstTokenSeconds = c.firstToken.Sub(c.processStart).Seconds()
	}
	for _, l := range counts.Layers {
		f.ExpertHits += l.Hits
		f.ExpertMisses += l.Misses
		f.BytesRead += l.BytesRead
	}
	if all := f.ExpertHits + f.ExpertMisses; all > 0 {
		f.ExpertHitRate = float64(f.ExpertHits) / float64(all)
	}
	if o.Temperature > 0 {
		f.Seed = &o.Seed
	}
	return f, nil
}

// speed returns seconds and tokens a second between two times; zeros if one is missing.
func speed(tokens int, from, to time.Time) (seconds, perSecond float64) {
	if from.IsZero() || to.IsZero() || !to.After(from) {
		return 0, 0
	}
	seconds = to.Sub(from).Seconds()
	return seconds, float64(tokens) / seconds
}

// line is the figures for people.
func (f *runFigures) line() string {
	s := fmt.Sprintf("prompt %d tokens, %.1f tokens/s; decode %d tokens, %.1f tokens/s; first token after %.2f s; expert hits %.1f%%; %s read",
		f.PromptTokens, f.PromptTokensPerSecond, f.DecodeTokens, f.DecodeTokensPerSecond, f.TimeToFirstTokenSeconds,
		100*f.ExpertHitRate, formatBytes(f.BytesRead))
	if f.Seed != nil {
		s += fmt.Sprintf("; seed %d", *f.Seed)
	}
	return s
}
