package responses

import (
	"container/list"
	"sync"
	"time"

	moeflux "github.com/moeflux/moeflux-actor"
)

// The bounds of conversations that are kept for previous_response_id.
const (
	keptBytes = 64 << 20
	keptTime  = time.Hour
)

// Kept keeps what was said up to a response, for a bounded time and size. Those used least
// recently go first. Who has another key does not find them.
type Kept struct {
	now func() time.Time

	mu    sync.Mutex
	byID  map[string]*list.Element
	order list.List // of *conversation; the one used last is at the front
	bytes int
}

type conversation struct {
	id, key  string
	messages []moeflux.Message
	bytes    int
	used     time.Time
}

// NewKept returns a store that is empty. now gives the time.
func NewKept(now func() time.Time) *Kept {
	return &Kept{now: now, byID: make(map[string]*list.Element)}
}

// keep keeps the messages of a conversation.
func (k *Kept) keep(id, key string, messages []moeflux.Message) {
	c := &conversation{id: id, key: key, messages: messages, used: k.now()}
	for i := range messages {
		c.bytes += sizeOf(&messages[i])
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.byID[id] = k.order.PushFront(c)
	k.bytes += c.bytes
	for last := k.order.Back(); last != nil; last = k.order.Back() {
		if old := last.Value.(*conversation); k.bytes > keptBytes || k.now().Sub(old.used) > keptTime {
			k.order.Remove(last)
			delete(k.byID, old.id)
			k.bytes -= old.bytes
			continue
		}
		return
	}
}

func sizeOf(m *moeflux.Message) int {
	n := 256 + len(m.Content) + len(m.ReasoningContent)
	for i := range m.ToolCalls {
		n += 128 + len(m.ToolCalls[i].Arguments)
	}
	return n
}

// find returns the messages of a conversation that was kept for a key.
func (k *Kept) find(id, key string) ([]moeflux.Message, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	e, ok := k.byID[id]
	if !ok {
		return nil, false
	}
	c := e.Value.(*conversation)
	if c.key != key || k.now().Sub(c.used) > keptTime {
		return nil, false
	}
	c.used = k.now()
	k.order.MoveToFront(e)
	return c.messages, true
}
