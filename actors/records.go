package actors

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/moeflux/moeflux-actor/tracing/record"
	"github.com/moeflux/moeflux-actor/tracing/recorder"
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

// DumpRecords writes the records that the engine has to a file in Config.FlightDir, and returns its
// path. reason says why, in words; it is in the file's Meta. When ctx ends first the file may still
// be written.
func (e *Engine) DumpRecords(ctx context.Context, reason string) (path string, err error) {
	if e.recorder == nil {
		return "", recorder.ErrNoFolder
	}
	return e.recorder.Dump(ctx, reason)
}

// startRecorder begins to write records to files, if there are to be any.
func (e *Engine) startRecorder(cfg Config) (err error) {
	if cfg.Record == "" && cfg.FlightDir == "" {
		return nil
	}
	e.recorder, err = recorder.Start(recorder.Config{
		Log: e.records, Meta: e.RecordMeta, File: cfg.Record, FileBytes: cfg.RecordLimit, Logger: cfg.Logger,
		Flight: recorder.Flight{Dir: cfg.FlightDir, After: cfg.FlightAfter, Times: cfg.FlightTimes},
	})
	if err != nil {
		return &RecordsError{err}
	}
	return nil
}

// RecordsError reports the file or the folder for records (Config.Record, Config.FlightDir) that
// cannot be made. The model itself has opened, and is closed again.
type RecordsError struct{ Err error }

func (e *RecordsError) Error() string {
	return fmt.Sprintf("actors: records cannot be written: %v", e.Err)
}
func (e *RecordsError) Unwrap() error { return e.Err }

// RecordMeta returns what the records are of: the model, the machine, and how the engine was set
// up. Reason and Written are left to whoever writes a file.
func (e *Engine) RecordMeta() record.Meta {
	m := e.meta
	m.Stages, m.Messages = slices.Clone(m.Stages), slices.Clone(m.Messages)
	m.Model.LayerKinds, m.Model.Routed = slices.Clone(m.Model.LayerKinds), slices.Clone(m.Model.Routed)
	m.Settings = maps.Clone(m.Settings)
	return m
}
