package fleet

import (
	"context"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/server/models"
)

// Entry is a model of a fleet.
type Entry struct {
	Spec
	// Info is what the model will run with (moeflux.Plan), for those who ask while it is away.
	Info moeflux.Info
	// Open loads the model. ctx ends when the fleet is closed.
	Open func(ctx context.Context) (Loaded, error)
}

// Loaded is a model in memory; Of makes one.
type Loaded interface {
	models.Model
	// ResizeExperts bounds the bytes of expert slots and returns what they may take then.
	ResizeExperts(ctx context.Context, bytes int64) (int64, error)
	// Close ends the model, which has no users then unless the fleet is being closed.
	Close(ctx context.Context) error
	// Watched is what the server watches of it; nil for nothing.
	Watched() models.Engine
}

// Of returns an open model, which whoever closes the result need not close.
func Of(m *moeflux.Model) Loaded { return whole{m} }

type whole struct{ *moeflux.Model }

func (w whole) Watched() models.Engine { return w.Engine() }

// Model is one model of a fleet, for models.Served. Chat and Generate wait until it is in memory,
// and keep it there until their events are over. The contexts of requests bound the waiting, and
// not the loading: that goes on for others.
type Model struct {
	fleet *Fleet
	index int
}

var _ models.Lent = (*Model)(nil)

// Borrow returns the model itself once it is in memory. It stays there until giveBack is called.
// Errors: *models.LoadError, moeflux.ErrClosed, and the cause of ctx where that ends first.
func (m *Model) Borrow(ctx context.Context) (in models.Model, giveBack func(), err error) {
	return m.fleet.acquire(ctx, m.index)
}

// Chat answers as the model itself does, once it is in memory.
func (m *Model) Chat(ctx context.Context, r moeflux.Request) moeflux.Events {
	return m.events(ctx, func(in models.Model) moeflux.Events { return in.Chat(ctx, r) })
}

// Generate answers as the model itself does, once it is in memory.
func (m *Model) Generate(ctx context.Context, r moeflux.Request) moeflux.Events {
	return m.events(ctx, func(in models.Model) moeflux.Events { return in.Generate(ctx, r) })
}

func (m *Model) events(ctx context.Context, of func(models.Model) moeflux.Events) moeflux.Events {
	return func(yield func(moeflux.Event, error) bool) {
		in, giveBack, err := m.Borrow(ctx)
		if err != nil {
			yield(moeflux.Event{}, err)
			return
		}
		defer giveBack()
		of(in)(yield)
	}
}

// ChatPrompt returns the prompt of a conversation; it loads the model for that. Callers who have a
// context borrow it instead.
func (m *Model) ChatPrompt(r moeflux.Request) (moeflux.Prompt, error) {
	in, giveBack, err := m.Borrow(context.Background())
	if err != nil {
		return moeflux.Prompt{}, err
	}
	defer giveBack()
	return in.ChatPrompt(r)
}

// Tokenizer returns the tokenizer of a model that is in memory; nil while it is not. Callers borrow
// the model for it.
func (m *Model) Tokenizer() *moeflux.Tokenizer {
	if in := m.fleet.loaded(m.index); in != nil {
		return in.Tokenizer()
	}
	return nil
}

// Info returns the settings in use; while the model is away those of the last time, or that it will
// have.
func (m *Model) Info() moeflux.Info {
	m.fleet.mu.Lock()
	defer m.fleet.mu.Unlock()
	return m.fleet.entries[m.index].Info
}

// Engine returns what the server watches of the model (models.Served); nil while it is away.
func (m *Model) Engine() models.Engine {
	if in := m.fleet.loaded(m.index); in != nil {
		return in.Watched()
	}
	return nil
}

// Status says where the model is.
func (m *Model) Status() models.Status { return m.fleet.status(m.index) }

// NeedOf returns the memory of a model with these settings, under a budget. States count with what
// a context takes, but with at most a sixteenth of the budget: what they take beyond that comes
// from the expert slots, which each engine gives up as memory gets short. Where the device has
// memory of its own, the need and the budget are of that.
func NeedOf(i moeflux.Info, budget int64) Need {
	states := i.StateBytes + min(i.KVBytesPerPos*int64(i.Context), i.StateMemory, budget/stateShare)
	n := Need{Fixed: i.WeightBytes + states}
	if i.HostSlots == 0 {
		n.Fixed += i.RecordMemory
	}
	slots := i.SlotMemory()
	switch {
	case slots > 0:
		n.Least, n.Most = min(slots, leastSlots(&i)), slots
	case i.NearSlots > 0:
		n.Fixed += i.NearMemory()
	default:
		n.Fixed += i.ExpertBytes
	}
	return n
}

// ExpertRoom returns what is left of a budget for the experts of a model that has it alone; never
// less than it must have.
func ExpertRoom(i moeflux.Info, budget int64) int64 {
	n := NeedOf(i, budget)
	if n.Most == 0 {
		n.Fixed -= i.ExpertBytes
	}
	return max(budget-n.Fixed, leastSlots(&i))
}

// leastSlots returns the bytes of the slots that an engine cannot do without: those of a wave, and
// of two tokens in one layer.
func leastSlots(i *moeflux.Info) int64 { return int64(max(i.WaveSlots, 2*i.TopK)) * int64(i.SlotBytes) }

// stateShare is the share of the budget that the states of one model count for at most.
const stateShare = 16
