package figures

import (
	"fmt"
	"time"

	"github.com/moeflux/moeflux-actor/actors"
)

// Clock notes when what of a text happened. A time is zero until then.
type Clock struct {
	Start                                         time.Time // since when somebody waits for it
	PromptStart, PromptEnd, FirstToken, LastToken time.Time
}

// Token notes that a token has come.
func (c *Clock) Token(now time.Time) {
	c.LastToken = now
	if c.FirstToken.IsZero() {
		c.FirstToken = now
	}
}

// Run is the speeds and counts of one text. A speed is 0 where nothing was measured.
type Run struct {
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

	Totals // since the engine was opened
	// since the prompt had been read; null if it was not
	Decode *Totals       `json:"decode"`
	Layers []LayerCounts `json:"layers"` // since the engine was opened
	Hosts  []HostCounts  `json:"hosts,omitempty"`
}

// RunOf returns the figures of a text with these numbers of tokens. read is what the engine had
// counted when the prompt had been read, nil if it was not, and now what it has counted since it
// was opened.
func RunOf(c *Clock, prompt, reused, made int, read, now *actors.Stats) Run {
	f := Run{PromptTokens: prompt, ReusedTokens: reused, DecodeTokens: max(0, made-1)}
	f.PromptSeconds, f.PromptTokensPerSecond = Speed(prompt-reused, c.PromptStart, c.PromptEnd)
	f.DecodeSeconds, f.DecodeTokensPerSecond = Speed(f.DecodeTokens, c.FirstToken, c.LastToken)
	if !c.FirstToken.IsZero() {
		f.TimeToFirstTokenSeconds = c.FirstToken.Sub(c.Start).Seconds()
	}
	f.Totals, f.Layers = Between(nil, now), Layers(nil, now)
	f.Hosts = hostsOf(now)
	if read != nil {
		f.Decode = new(Between(read, now))
	}
	return f
}

// Text formats the figures for people, but for the counts of reads.
func (f *Run) Text() string {
	reused := ""
	if f.ReusedTokens > 0 {
		reused = fmt.Sprintf(" (%d reused)", f.ReusedTokens)
	}
	s := fmt.Sprintf("prompt %s%s, %.1f tokens/s; decode %s, %.1f tokens/s; first token after %.2f s; expert hits %.1f%%; %s read",
		Counted(f.PromptTokens, "token"), reused, f.PromptTokensPerSecond, Counted(f.DecodeTokens, "token"), f.DecodeTokensPerSecond,
		f.TimeToFirstTokenSeconds, 100*f.ExpertHitRate, Bytes(f.BytesRead))
	if f.Decode != nil && f.DecodeTokens > 0 {
		s += "; " + f.Decode.PerToken(f.DecodeTokens)
	}
	if len(f.Hosts) > 0 {
		s += "; " + hostsText(f.Hosts, f.ExpertAway)
	}
	return s
}
