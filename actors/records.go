package actors

import (
	"context"
	"maps"
	"slices"

	"github.com/moeflux/moeflux-actor/tracing/record"
)

// Records returns the engine's log of what it does. Whoever reads it does so with cursors of its
// own, at any time, and holds nobody up. It can be read after Close, too.
func (e *Engine) Records() *record.Log { return e.records }

// Recording returns a copy of the records that the engine has, with their Meta. It takes some
// milliseconds and holds nobody up. The tables are copied one after the other, so the last records
// of one may be about what others do not tell yet.
func (e *Engine) Recording(ctx context.Context) (*record.Recording, error) {
	return within(ctx, nil, func() (*record.Recording, error) {
		r := e.records.Recording()
		r.Meta = e.RecordMeta()
		return r, nil
	}, nil)
}

// RecordMeta returns what the records are of: the model, the machine, and how the engine was set
// up. Reason and Written are left to whoever writes a file.
func (e *Engine) RecordMeta() record.Meta {
	m := e.meta
	m.Stages, m.Messages = slices.Clone(m.Stages), slices.Clone(m.Messages)
	m.Model.LayerKinds, m.Model.Routed = slices.Clone(m.Model.LayerKinds), slices.Clone(m.Model.Routed)
	m.Settings = maps.Clone(m.Settings)
	return m
}
