package moeflux

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/internal/demo"
	"github.com/moeflux/moeflux-actor/io/modelfiles"
	"github.com/moeflux/moeflux-actor/stages/sample/constraint"
	"github.com/moeflux/moeflux-actor/tokenizer"
	"github.com/moeflux/moeflux-actor/tokenizer/chat"
	"github.com/moeflux/moeflux-actor/tokenizer/chat/tools"
)

// Model is an open model. Its methods may be called from many goroutines.
type Model struct {
	dir    string
	device gpu.Device // nil if it is the caller's
	engine *actors.Engine
	log    *slog.Logger
	text   *tokenizer.Tokenizer // nil with Options.TokensOnly
	own    func() (Sampling, error)
	chat   func() (*dialect, error)
	words  func() *constraint.Vocabulary // for constraints

	markedWords func() *constraint.Vocabulary // for calls of tools
	grammars    grammars
}

// Generator is what a service needs of a model. *Model is one; a test may have another that yields
// what its script says.
type Generator interface {
	Generate(ctx context.Context, r Request) Events
	Chat(ctx context.Context, r Request) Events
}

var _ Generator = (*Model)(nil)

// Open opens the model in a packed directory, as "moeflux-actor convert" writes it, or in a GGUF
// file, which is computed with in place. ctx bounds the opening only. The caller closes the model.
// Errors: *NotModelError, *MemoryError, *ContextMemoryError, *DeviceError, *UnfinishedError, and
// those of files.
func Open(ctx context.Context, dir string, o Options) (_ *Model, err error) {
	m := &Model{dir: dir, log: o.Config.Logger}
	if m.log == nil {
		m.log = slog.New(slog.DiscardHandler)
	}
	now := o.Now
	if now == nil {
		now = time.Now
	}
	m.own = sync.OnceValues(func() (Sampling, error) { s, _, err := Defaults(dir); return s, err })
	m.words = sync.OnceValue(func() *constraint.Vocabulary { return m.vocabulary(nil) })
	m.markedWords = sync.OnceValue(m.markVocabulary)
	m.chat = sync.OnceValues(func() (*dialect, error) { return m.readDialect(now) })
	if err := modelfiles.Check(dir); err != nil {
		return nil, err
	}
	if err := m.openEngine(ctx, dir, o); err != nil {
		return nil, err
	}
	if !o.TokensOnly {
		if m.text, err = loadTokenizer(dir); err != nil {
			return nil, errors.Join(err, m.Close(ctx))
		}
	}
	return m, nil
}

// Plan returns the settings that Open would use at this moment, without the memory that it would
// take. The errors are those of Open up to there.
func Plan(dir string, o Options) (info Info, err error) {
	if err := modelfiles.Check(dir); err != nil {
		return info, err
	}
	cfg, mine, err := o.resolve(dir)
	if err != nil {
		return info, err
	}
	if mine {
		defer func() { err = errors.Join(err, cfg.Device.Close()) }()
	}
	if info, err = actors.Plan(cfg); err != nil {
		return info, modelfiles.Explain(dir, err)
	}
	return info, nil
}

// openEngine opens the device, if the caller has not, and the engine.
func (m *Model) openEngine(ctx context.Context, dir string, o Options) error {
	cfg, mine, err := o.resolve(dir)
	if err != nil {
		return err
	}
	if mine {
		m.device = cfg.Device
	}
	o.Config = cfg
	if m.engine, err = o.engine(ctx); err == nil {
		return nil
	}
	if mine {
		err = errors.Join(err, actors.CloseDevice(cfg.Device, err))
	}
	if errors.As(err, new(*actors.RecordsError)) { // not the model's fault
		return err
	}
	return modelfiles.Explain(dir, err)
}

// Demo opens the built-in model with the options that suit the machine: 17 million parameters that
// write what looks like Go source. On first use it is unpacked to the user's cache folder, 11 MiB.
func Demo(ctx context.Context) (*Model, error) {
	dir, err := DemoDir(ctx, "")
	if err != nil {
		return nil, err
	}
	return Open(ctx, dir, Options{})
}

// DemoDir returns the directory of the built-in model, for Open. It is unpacked there on first use.
// cacheDir is the folder to keep it in; "" means moeflux-actor in the user's cache folder.
func DemoDir(ctx context.Context, cacheDir string) (string, error) {
	o := Options{CacheDir: cacheDir}
	folder, err := o.cacheDir()
	if err != nil {
		return "", err
	}
	return demo.Dir(ctx, folder, nil)
}

// loadTokenizer loads the tokenizer of a packed model directory or a GGUF file.
func loadTokenizer(dir string) (*tokenizer.Tokenizer, error) {
	t, err := modelfiles.Tokenizer(dir)
	if err == nil && t == nil {
		return nil, &NoTokenizerError{Dir: dir}
	}
	return t, err
}

// Close ends the model: it takes no new requests and lets those under way finish. When ctx ends
// first they are cancelled, and Close returns within 100 ms. If a disk or a device hangs, the error
// is a *LeftBehindError, and a goroutine frees the rest when it can. A closed model may be closed
// again, which waits for the same end.
func (m *Model) Close(ctx context.Context) error {
	err := m.engine.Close(ctx)
	if m.device == nil {
		return err
	}
	return errors.Join(err, actors.CloseDevice(m.device, err))
}

// ResizeExperts bounds the memory of the expert slots while the model runs, in bytes, and returns
// what they may take then: at least that of one wave of experts, and at most Info.SlotMemory. The
// bound holds until the next call. What is given up goes back to the system as experts can be
// spared; answers stay the same. Where experts are mapped or loaded there are no slots, and nothing
// changes.
func (m *Model) ResizeExperts(ctx context.Context, bytes int64) (int64, error) {
	i := m.Info()
	if i.SlotMemory() == 0 {
		return 0, nil
	}
	slots, err := m.engine.ResizeSlots(ctx, int(max(1, min(bytes, i.SlotMemory())/int64(i.SlotBytes))))
	return int64(slots) * int64(i.SlotBytes), err
}

// Engine returns the engine underneath, of package actors: token ids, logits, states, statistics
// (Engine.Stats), and an address for messages of other actors (Engine.PID). Closing the model
// closes it.
func (m *Model) Engine() *actors.Engine { return m.engine }

// Info returns the settings in use, and the model's name.
func (m *Model) Info() Info { return m.engine.Info() }

// Info is what a model runs with, after defaults and limits: Name, Device, Context, Slots and the
// rest of package actors.
type Info = actors.Info

// Stats is what an engine counts (Engine.Stats), LayerStats a layer's part of it and HostStats an
// expert host's; package stages says what each figure is.
type (
	Stats      = actors.Stats
	LayerStats = actors.LayerStats
	HostStats  = actors.HostStats
	Place      = actors.Place
)

// Where an expert's record can be (LayerStats.Places).
const (
	OnDisk    = actors.OnDisk
	BeingRead = actors.BeingRead
	InSlot    = actors.InSlot
)

// Tokenizer turns text into token ids and back.
type Tokenizer = tokenizer.Tokenizer

// Tokenizer returns the model's tokenizer; nil with Options.TokensOnly. Its Encode(text, true)
// returns the token ids of a prompt, an []int32 that begins as texts of the model do, and an error;
// Decode(ids, true) returns the text of ids without special tokens.
func (m *Model) Tokenizer() *Tokenizer { return m.text }

// Template returns the model's chat template. Errors: *NoTemplateError, or why the template cannot
// be used.
func (m *Model) Template() (*chat.Template, error) {
	d, err := m.chat()
	if err != nil {
		return nil, err
	}
	return d.template, nil
}

// dialect is how a model converses.
type dialect struct {
	template *chat.Template
	syntax   tools.Syntax
	ends     []int32 // tokens that end its turn, beside those that end a text
	marked   bool    // marks that any answer may have are special tokens
}

func (m *Model) readDialect(now func() time.Time) (*dialect, error) {
	if m.text == nil {
		return nil, errTokensOnly
	}
	template, err := modelfiles.Template(m.dir, chat.Options{Now: now})
	if err != nil {
		return nil, err
	}
	d := &dialect{template: template, syntax: tools.Detect(template.Source(), tools.Format(m.Info().Arch.ToolCalls()))}
	mark, ok := m.text.TokenID(d.syntax.Reasoning.Begin)
	d.marked = d.syntax.Framed() || ok && m.text.IsSpecial(mark)
	ids, err := m.text.Encode(template.TurnEnd(), false)
	if err == nil && len(ids) > 0 && m.text.IsSpecial(ids[0]) {
		d.ends = ids[:1]
	}
	return d, nil
}
