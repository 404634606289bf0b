package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/figures"
	"github.com/moeflux/moeflux-actor/internal/flags"
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

// runFigures are the figures of one run, and what it ran with.
type runFigures struct {
	figures.Run
	MemoryLimit int64           `json:"memory_limit"` // of the cgroup, in bytes; 0 for none
	ExpertIO    actors.ExpertIO `json:"expert_io"`
	Slots       int             `json:"slots"`
	Prefetch    actors.Prefetch `json:"prefetch"`
	Ahead       int             `json:"prefetch_layers"` // 0 if nothing is predicted
	ReadWorkers int             `json:"read_workers"`
	Tuned       string          `json:"tuned"` // of these, what tune chose, as flags; "" for nothing
	// the settings that change results, in one line: actors.Info.Exactness
	Exactness string           `json:"exactness"`
	Account   *figures.Account `json:"account"` // what the request took; null if it did not end

	Sampling flags.SamplingUsed `json:"sampling"`
	Seed     *uint64            `json:"seed"` // null if greedy
}

// runStats gathers the figures after the text has ended. Hits and bytes count from the opening of
// the engine.
func runStats(ctx context.Context, g *generation) (*runFigures, error) {
	counts, err := g.s.Engine.Stats(ctx)
	if err != nil {
		return nil, err
	}
	info := g.s.Engine.Info()
	f := &runFigures{
		Run:         figures.RunOf(&g.Clock, len(g.Prompt.IDs), g.Reused, len(g.Tokens), g.promptCounts, counts),
		MemoryLimit: g.s.MemoryLimit, ExpertIO: info.ExpertIO, Slots: info.Slots, Prefetch: info.Prefetch, Ahead: info.PrefetchLayers,
		ReadWorkers: info.ReadWorkers, Sampling: g.used, Exactness: info.Exactness, Tuned: info.Tuned,
	}
	if g.End != nil {
		f.Account = new(figures.AccountOf(&g.End.Usage.Account))
	}
	if g.used.Temperature > 0 {
		f.Seed = g.request.Sampling.Seed
	}
	return f, nil
}

// line formats the figures.
func (f *runFigures) line() string {
	parts := []string{f.Run.Text()}
	add := func(text string) {
		if text != "" {
			parts = append(parts, text)
		}
	}
	if f.ExpertIO.Streams() {
		add(f.ReadCounts.Text())
		add(f.AheadText(string(f.Prefetch), f.Ahead))
	}
	if f.MemoryLimit > 0 {
		add(fmt.Sprintf("under a memory limit of %s, %d expert slots", figures.Bytes(f.MemoryLimit), f.Slots))
	}
	if f.Tuned != "" {
		add("tuned " + f.Tuned)
	}
	add(f.Sampling.Text())
	if f.Seed != nil {
		add(fmt.Sprintf("seed %d", *f.Seed))
	}
	return strings.Join(parts, "; ")
}
