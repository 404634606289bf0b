package api

import (
	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/server/models"
)

// Usage is what a call took, in OpenAI's words.
type Usage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	TotalTokens      int `json:"total_tokens"`
	Prompt           struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	Completion struct {
		Reasoning int `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
	Account Account `json:"moeflux"`
}

// Account is what the request was given of the machine: an extension.
type Account struct {
	QueueMS    float64 `json:"queue_ms"`
	TotalMS    float64 `json:"total_ms"`
	DeviceMS   float64 `json:"device_ms"`
	DiskWaitMS float64 `json:"disk_wait_ms"`
	Hit        int64   `json:"experts_hit"`
	Late       int64   `json:"experts_late"`
	Missed     int64   `json:"experts_missed"`
	DiskBytes  int64   `json:"disk_bytes"`
	Cached     int     `json:"cached_tokens"` // of the prompt
	// Exactness names the settings that change results.
	Exactness string `json:"exactness,omitempty"`
}

// UsageOf returns the usage of a model's answer that is still to come.
func UsageOf(m *models.Served) Usage { return Usage{Account: Account{Exactness: m.Label()}} }

// Add adds what an answer took. The prompt of several choices counts once, as clients expect it:
// with the first of them.
func (u *Usage) Add(e *moeflux.Usage, reasoning int, first bool) {
	if first {
		u.PromptTokens += e.PromptTokens
		u.Prompt.Cached += e.ReusedTokens
		u.Account.Cached += e.ReusedTokens
	}
	u.CompletionTokens += e.NewTokens
	u.Completion.Reasoning += reasoning
	u.TotalTokens = u.PromptTokens + u.CompletionTokens
	a, ms := &u.Account, func(ns int64) float64 { return float64(ns) / 1e6 }
	a.QueueMS += ms(e.Account.QueueNS)
	a.TotalMS += ms(e.Account.TotalNS)
	a.DeviceMS += ms(e.Account.DeviceNS)
	a.DiskWaitMS += ms(e.Account.DiskWaitNS)
	a.Hit += e.Account.Hit
	a.Late += e.Account.Late
	a.Missed += e.Account.Missed
	a.DiskBytes += e.Account.DiskBytes
}

// FinishReason says in OpenAI's words why a text ended.
func FinishReason(e *moeflux.End) string {
	switch {
	case len(e.Message.ToolCalls) > 0 && e.Reason != moeflux.StopLength && e.Reason != moeflux.StopContext:
		return "tool_calls"
	case e.Reason == moeflux.StopLength, e.Reason == moeflux.StopContext:
		return "length"
	}
	return "stop"
}

// Thoughts counts the tokens of an answer that are reasoning: those before it says anything.
type Thoughts struct {
	tokens, Count int
	any, said     bool
}

// Piece counts an event.
func (t *Thoughts) Piece(e *moeflux.Event) {
	t.any = t.any || e.Reasoning != ""
	t.said = t.said || e.Text != "" || e.Call != nil
	if e.Token != nil && !t.said {
		t.tokens++
	}
	if t.any {
		t.Count = t.tokens
	}
}
