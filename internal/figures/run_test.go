package figures

import (
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/actors"
)

// TestRunOf counts the first token from the start, the prompt from where it began, and decoding
// from the first token.
func TestRunOf(t *testing.T) {
	at := func(seconds int) time.Time { return time.Unix(int64(seconds), 0) }
	c := Clock{Start: at(1), PromptStart: at(3), PromptEnd: at(7)}
	for _, s := range []int{8, 9, 12} {
		c.Token(at(s))
	}
	got := RunOf(&c, 30, 10, 3, nil, new(actors.Stats))
	want := Run{
		PromptTokens: 30, ReusedTokens: 10, PromptSeconds: 4, PromptTokensPerSecond: 5,
		DecodeTokens: 2, DecodeSeconds: 4, DecodeTokensPerSecond: 0.5, TimeToFirstTokenSeconds: 7,
	}
	if got.Decode != nil || len(got.Layers) != 0 {
		t.Errorf("decode %v, layers %v of an engine that did nothing", got.Decode, got.Layers)
	}
	if got.Decode, got.Layers = nil, nil; got.Text() != want.Text() || got.TimeToFirstTokenSeconds != 7 || got.PromptSeconds != 4 || got.DecodeSeconds != 4 {
		t.Errorf("got %+v, want %+v", got, want)
	}
	const text = "prompt 30 tokens (10 reused), 5.0 tokens/s; decode 2 tokens, 0.5 tokens/s; first token after 7.00 s; expert hits 0.0%; 0 B read"
	if want.Text() != text {
		t.Errorf("got %q, want %q", want.Text(), text)
	}
	if none := RunOf(&Clock{Start: at(1)}, 3, 0, 0, nil, new(actors.Stats)); none.DecodeTokens != 0 || none.TimeToFirstTokenSeconds != 0 {
		t.Errorf("without a token: %+v", none)
	}
}
