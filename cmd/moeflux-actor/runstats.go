package main

import (
	"context"
	"fmt"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/figures"
)

// runResult is what run --json prints.
type runResult struct {
	// Only with --chat: the prompt that the template made, and the two parts of the text.
	Prompt    *string `json:"prompt,omitempty"`
	Reasoning *string `json:"reasoning,omitempty"`
	Content   *string `json:"content,omitempty"`
	// with --tools, as in the messages of OpenAI-style services
	ToolCalls []toolCall `json:"tool_calls,omitempty"`

	Text      string  `json:"text"`
	PromptIDs []int32 `json:"prompt_ids"`
	// up to the end of the stop string, if there is one
	NewIDs     []int32           `json:"new_ids"`
	StopReason actors.StopReason `json:"stop_reason"`
	Constraint *constraintUsed   `json:"constraint,omitempty"` // with --regex and the like
	LogProbs   []tokenLogProbs   `json:"logprobs,omitempty"`   // of new_ids, with --logprobs
	Stats      *runFigures       `json:"stats"`
}

// toolCall is a call of a function.
type toolCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"` // function
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"` // a JSON object as text
	} `json:"function"`
}

// tokenLogProb is a token and its log-probability, natural, in the model's own distribution.
type tokenLogProb struct {
	ID      int32   `json:"id"`
	Token   string  `json:"token"` // U+FFFD stands for part of a character
	Bytes   []int   `json:"bytes"`
	LogProb float64 `json:"logprob"`
}

// tokenLogProbs is a token of the text and the most likely alternatives.
type tokenLogProbs struct {
	tokenLogProb
	Top []tokenLogProb `json:"top_logprobs"`
}

// runFigures are the speeds and counts of one run. A speed is 0 where nothing was measured.
type runFigures struct {
	PromptTokens int `json:"prompt_tokens"`
	// of the prompt: tokens that an earlier turn had left in the state, and that were not read
	// again
	ReusedTokens          int     `json:"reused_tokens"`
	PromptSeconds         float64 `json:"prompt_seconds"`
	PromptTokensPerSecond float64 `json:"prompt_tokens_per_second"`

	// The first new token comes from the prompt's own logits, so decode_tokens is one less than the
	// number of new ids.
	DecodeTokens          int     `json:"decode_tokens"`
	DecodeSeconds         float64 `json:"decode_seconds"`
	DecodeTokensPerSecond float64 `json:"decode_tokens_per_second"`

	// from the start of the process; 0 if no token came
	TimeToFirstTokenSeconds float64 `json:"time_to_first_token_seconds"`

	figures.Totals // since the engine was opened
	// since the prompt had been read; null if it was not
	Decode      *figures.Totals       `json:"decode"`
	Layers      []figures.LayerCounts `json:"layers"`       // since the engine was opened
	MemoryLimit int64                 `json:"memory_limit"` // of the cgroup, in bytes; 0 for none
	ExpertIO    actors.ExpertIO       `json:"expert_io"`
	Slots       int                   `json:"slots"`
	Prefetch    actors.Prefetch       `json:"prefetch"`
	Ahead       int                   `json:"prefetch_layers"` // 0 if nothing is predicted
	ReadWorkers int                   `json:"read_workers"`

	Sampling samplingUsed `json:"sampling"`
	Seed     *uint64      `json:"seed"` // null if greedy
}

// runStats gathers the figures after the text has ended. Hits and bytes count from the opening of
// the engine.
func runStats(ctx context.Context, g *generation) (*runFigures, error) {
	counts, err := g.s.engine.Stats(ctx)
	if err != nil {
		return nil, err
	}
	c := &g.clock
	f := &runFigures{PromptTokens: len(g.prompt.IDs), ReusedTokens: g.reused, DecodeTokens: max(0, len(g.newIDs)-1)}
	f.PromptSeconds, f.PromptTokensPerSecond = figures.Speed(f.PromptTokens-f.ReusedTokens, c.promptStart, c.promptEnd)
	f.DecodeSeconds, f.DecodeTokensPerSecond = figures.Speed(f.DecodeTokens, c.firstToken, c.lastToken)
	if !c.firstToken.IsZero() {
		f.TimeToFirstTokenSeconds = c.firstToken.Sub(c.processStart).Seconds()
	}
	f.Totals, f.Layers = figures.Between(nil, counts), figures.Layers(nil, counts)
	if g.promptCounts != nil {
		decode := figures.Between(g.promptCounts, counts)
		f.Decode = &decode
	}
	info := g.s.engine.Info()
	f.MemoryLimit, f.ExpertIO, f.Slots = g.s.memoryLimit, info.ExpertIO, info.Slots
	f.Prefetch, f.Ahead, f.ReadWorkers = info.Prefetch, info.PrefetchLayers, info.ReadWorkers
	f.Sampling = g.used
	if g.used.Temperature > 0 {
		f.Seed = g.request.Sampling.Seed
	}
	return f, nil
}

// line formats the figures.
func (f *runFigures) line() string {
	reused := ""
	if f.ReusedTokens > 0 {
		reused = fmt.Sprintf(" (%d reused)", f.ReusedTokens)
	}
	s := fmt.Sprintf("prompt %s%s, %.1f tokens/s; decode %s, %.1f tokens/s; first token after %.2f s",
		counted(f.PromptTokens, "token"), reused, f.PromptTokensPerSecond, counted(f.DecodeTokens, "token"), f.DecodeTokensPerSecond, f.TimeToFirstTokenSeconds)
	s += fmt.Sprintf("; expert hits %.1f%%; %s read", 100*f.ExpertHitRate, formatBytes(f.BytesRead))
	if f.Decode != nil && f.DecodeTokens > 0 {
		s += "; " + f.Decode.Times.PerToken(f.DecodeTokens)
	}
	if f.ExpertIO != actors.ExpertIOMmap {
		if reads := f.ReadCounts.Text(); reads != "" {
			s += "; " + reads
		}
		if ahead := f.Totals.AheadText(string(f.Prefetch), f.Ahead); ahead != "" {
			s += "; " + ahead
		}
	}
	if f.MemoryLimit > 0 {
		s += fmt.Sprintf("; under a memory limit of %s, %d expert slots", formatBytes(f.MemoryLimit), f.Slots)
	}
	if text := f.Sampling.text(); text != "" {
		s += "; " + text
	}
	if f.Seed != nil {
		s += fmt.Sprintf("; seed %d", *f.Seed)
	}
	return s
}
