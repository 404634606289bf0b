package main

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/internal/flags"
	"github.com/moeflux/moeflux-actor/internal/process"
	"github.com/moeflux/moeflux-actor/server"
	"github.com/moeflux/moeflux-actor/server/fleet"
	"github.com/moeflux/moeflux-actor/tracing/export"
)

// fleetFlags say which models serve has, and which of them are in memory.
type fleetFlags struct {
	Model       []string      `sep:"none" placeholder:"[NAME=]DIR|FILE.gguf" help:"A packed model directory or a GGUF file, and the name by which clients ask for it; may be given several times. Default: the demo model, and the directory's name."`
	Alias       []string      `sep:"none" placeholder:"ALIAS=NAME" help:"A further name of a model; may be given several times."`
	Name        []string      `placeholder:"NAME" help:"Further names of the first model."`
	Pin         []string      `placeholder:"NAME" help:"A model that is loaded at the start and never unloaded; may be given several times. The first model is loaded at the start as well, but may be unloaded."`
	Memory      flags.Size    `placeholder:"SIZE" help:"The most bytes of all models together, where several share memory. Default: what is free at the start, less a reserve of a sixteenth. Like 8GiB, 512MB, or 50% of the machine's memory."`
	UnloadAfter time.Duration `placeholder:"TIME" help:"How long a model that is not pinned may be unused before it is unloaded. Default: for ever, as long as no other wants its memory."`
}

// servedModel is a model of the command line.
type servedModel struct {
	name    string
	aliases []string
	pinned  bool
	flags   flags.Engine

	of    int              // how many models there are
	spans *export.Exporter // nil if nothing is traced
}

// served returns the models that the flags name.
func (c *serveCmd) served() ([]servedModel, error) {
	if c.StateDir != "" && c.StateDisk == (flags.Size{}) { // a server is restarted while people converse
		c.StateDisk.Bytes = defaultSessionLimit
	}
	var all []servedModel
	for _, given := range append(c.Model, make([]string, max(0, 1-len(c.Model)))...) { // "": the demo model
		name, dir := splitModel(given)
		all = append(all, servedModel{name: name, flags: flags.Engine{Model: dir, Settings: c.Settings}})
	}
	find := func(flag, name string) (*servedModel, error) {
		if at := slices.IndexFunc(all, func(m servedModel) bool { return m.name == name }); at >= 0 {
			return &all[at], nil
		}
		return nil, process.Usagef("%s names a model %q; there are %s", flag, name, namesOf(all))
	}
	for _, given := range c.Alias {
		alias, name, ok := strings.Cut(given, "=")
		if !ok || alias == "" {
			return nil, process.Usagef("--alias %s: must be ALIAS=NAME", given)
		}
		m, err := find("--alias "+given, name)
		if err != nil {
			return nil, err
		}
		m.aliases = append(m.aliases, alias)
	}
	for _, name := range c.Pin {
		m, err := find("--pin", name)
		if err != nil {
			return nil, err
		}
		m.pinned = true
	}
	first := &all[0]
	first.aliases = append(first.aliases, slices.DeleteFunc(slices.Clone(c.Name), func(alias string) bool { return alias == first.name })...)
	return all, c.checkSeveral(all)
}

// splitModel takes NAME=DIR apart; without a name it is the directory's. A directory may have an
// equals sign in its name.
func splitModel(given string) (name, dir string) {
	if given == "" {
		return "demo", ""
	}
	name, dir, named := strings.Cut(given, "=")
	if _, err := os.Stat(given); !named || err == nil || strings.ContainsRune(name, filepath.Separator) {
		dir = given
		if abs, err := filepath.Abs(dir); err == nil {
			return filepath.Base(abs), dir
		}
		return filepath.Base(dir), dir
	}
	return name, dir
}

func namesOf(all []servedModel) string {
	var names []string
	for _, m := range all {
		names = append(names, m.name)
	}
	return strings.Join(names, ", ")
}

// checkSeveral reports flags that mean one model.
func (c *serveCmd) checkSeveral(all []servedModel) error {
	for i := range all {
		if err := all[i].flags.Check(); err != nil {
			return err
		}
	}
	if c.UnloadAfter < 0 {
		return process.Usagef("--unload-after %v: must be 0 or more", c.UnloadAfter)
	}
	if !c.comeAndGo() {
		return nil
	}
	for flag, given := range map[string]bool{
		"--experts-dir": c.ExpertsDir != "" && len(all) > 1, "--record": c.Record != "",
		"--profile FILE": c.Profile != "" && c.Profile != flags.ProfileAuto && c.Profile != flags.ProfileOff && len(all) > 1,
	} {
		if given {
			return process.Usagef("%s is for one model that stays in memory", flag)
		}
	}
	return nil
}

// comeAndGo reports whether models may be loaded and unloaded while the server runs.
func (c *serveCmd) comeAndGo() bool { return len(c.Model) > 1 || c.UnloadAfter > 0 }

// withModels runs f with the models that the flags name: one that stays open, or several of a
// fleet.
func (c *serveCmd) withModels(ctx context.Context, inv *process.Invocation, f func([]server.Served, *export.Exporter) error) error {
	all, err := c.served()
	if err != nil {
		return err
	}
	if c.comeAndGo() {
		return c.withFleet(ctx, inv, all, f)
	}
	m := &all[0]
	return m.flags.WithModel(ctx, inv, func(s *flags.Opened) error {
		m.flags.Model = s.Dir
		served, err := m.named()
		if err != nil {
			return err
		}
		served.Model, served.Engine = s.Model, func() server.Engine { return s.Engine }
		return f([]server.Served{served}, s.Exporter)
	})
}

// named returns what clients know of the model, whose directory has been found.
func (m *servedModel) named() (server.Served, error) {
	defaults, _, err := moeflux.Defaults(m.flags.Model)
	return server.Served{Name: m.name, Aliases: m.aliases, Defaults: defaults}, err
}

// withFleet runs f with models that are loaded as they are wanted. Those that are pinned, and the
// first, are loaded before.
func (c *serveCmd) withFleet(ctx context.Context, inv *process.Invocation, all []servedModel, f func([]server.Served, *export.Exporter) error) (err error) {
	o := fleet.Options{UnloadAfter: c.UnloadAfter, Logger: c.Logger(inv.Stderr)}
	if o.Memory, err = c.Memory.Resolve(inv.Env.Memory); err != nil {
		return err
	}
	spans, err := all[0].flags.OpenExporter(inv, o.Logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, flags.CloseExporter(spans, inv.Say)) }()
	served := make([]server.Served, len(all))
	for i := range all {
		m := &all[i]
		m.of, m.spans = len(all), spans
		entry, err := m.entry(ctx, inv, &o.Memory)
		if err != nil {
			return err
		}
		o.Entries = append(o.Entries, entry)
		if served[i], err = m.named(); err != nil {
			return err
		}
	}
	fl, err := fleet.New(o)
	if err != nil {
		return process.Usagef("%v; raise --memory, or give fewer models or pins", err)
	}
	defer func() { err = errors.Join(err, fl.Close(ctx)) }()
	for i, m := range fl.Models() {
		if served[i].Model, served[i].Engine = m, m.Engine; i == 0 || all[i].pinned {
			_, giveBack, err := m.Borrow(ctx)
			if err != nil {
				return err
			}
			giveBack()
		}
	}
	return f(served, spans)
}

// entry says what a fleet must know of the model, of which it is one of several. Its flags get what
// is fixed from now on, so that what others have in memory does not change it: where it is, how
// experts are read, and the most memory for these and for states. A budget of 0 becomes what is
// free.
func (m *servedModel) entry(ctx context.Context, inv *process.Invocation, budget *int64) (e fleet.Entry, err error) {
	f := &m.flags
	f.Profile = cmp.Or(f.Profile, flags.ProfileAuto) // what was used most is what comes back first
	if f.FlightDir != "" {
		f.FlightDir = filepath.Join(f.FlightDir, url.PathEscape(m.name))
	}
	if f.Model, err = flags.ModelDir(ctx, inv, f.Model, f.CacheDir); err != nil {
		return e, err
	}
	info, err := f.Plan(ctx, inv, slog.New(slog.DiscardHandler))
	if err != nil {
		return e, err
	}
	*budget = cmp.Or(*budget, info.Available-info.Reserve)
	if f.ExpertMemory == (flags.Size{}) {
		f.ExpertMemory.Bytes = fleet.ExpertRoom(info, *budget)
	}
	if f.StateMemory == (flags.Size{}) {
		f.StateMemory.Bytes = info.StateMemory / int64(m.of)
	}
	if info, err = f.Plan(ctx, inv, slog.New(slog.DiscardHandler)); err != nil {
		return e, err
	}
	f.ExpertIO = string(info.ExpertIO)
	return fleet.Entry{
		Spec: fleet.Spec{Name: m.name, Need: fleet.NeedOf(info, *budget), Pinned: m.pinned}, Info: info,
		Open: func(ctx context.Context) (fleet.Loaded, error) {
			o := moeflux.Options{Now: inv.Env.Now}
			if m.spans != nil {
				o.Config.Tracer = m.spans.Provider()
			}
			s, err := f.Open(ctx, inv, o)
			if err != nil {
				return nil, err
			}
			return opened{fleet.Of(s.Model), s}, nil
		},
	}, nil
}

// opened is a model of a fleet in memory, with what was opened for it.
type opened struct {
	fleet.Loaded
	session *flags.Opened
}

// Close ends the model and the rest.
func (o opened) Close(ctx context.Context) error {
	return errors.Join(o.Loaded.Close(ctx), o.session.Close())
}
