package scripted

import (
	"context"
	"hash/fnv"
	"strings"
	"sync"

	moeflux "github.com/moeflux/moeflux-actor"
)

// Script returns the events of a request.
type Script func(ctx context.Context, r moeflux.Request) moeflux.Events

// Model says what its script has. The zero value repeats what it is told. Its methods may be called
// from many goroutines.
type Model struct {
	Context int                // positions that it claims to have; 0 means 1
	Say     Script             // nil means Echo
	Text    *moeflux.Tokenizer // what Tokenizer returns

	mu    sync.Mutex
	asked []moeflux.Request
	ended int // requests whose events are over, or whose reader has left
}

// Info tells the context.
func (m *Model) Info() moeflux.Info { return moeflux.Info{Context: max(m.Context, 1)} }

// Tokenizer returns Text.
func (m *Model) Tokenizer() *moeflux.Tokenizer { return m.Text }

// ChatPrompt makes a token of each word of the conversation and of the tools.
func (m *Model) ChatPrompt(r moeflux.Request) (moeflux.Prompt, error) { return promptOf(&r), nil }

func promptOf(r *moeflux.Request) (p moeflux.Prompt) {
	var text strings.Builder
	for _, t := range r.Tools {
		text.WriteString("tool " + t.Name() + "\n")
	}
	for _, m := range r.Messages {
		text.WriteString(m.Role + ": " + m.Text() + "\n")
	}
	p.Text = text.String() + r.Prompt
	for _, word := range strings.Fields(p.Text) {
		h := fnv.New32a()
		h.Write([]byte(word))
		p.IDs = append(p.IDs, int32(h.Sum32()>>1))
	}
	return p
}

// Chat answers by the script.
func (m *Model) Chat(ctx context.Context, r moeflux.Request) moeflux.Events { return m.ask(ctx, r) }

// Generate answers by the script.
func (m *Model) Generate(ctx context.Context, r moeflux.Request) moeflux.Events { return m.ask(ctx, r) }

func (m *Model) ask(ctx context.Context, r moeflux.Request) moeflux.Events {
	return func(yield func(moeflux.Event, error) bool) {
		m.mu.Lock()
		m.asked = append(m.asked, r)
		m.mu.Unlock()
		defer func() {
			m.mu.Lock()
			m.ended++
			m.mu.Unlock()
		}()
		say := m.Say
		if say == nil {
			say = Echo
		}
		say(ctx, r)(yield)
	}
}

// Last returns the request that came last.
func (m *Model) Last() moeflux.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.asked[len(m.asked)-1]
}

// Open returns how many requests have begun and not ended.
func (m *Model) Open() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.asked) - m.ended
}
