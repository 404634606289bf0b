package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/server/models"
)

// pulse tells which engines are not whole: those that do not answer, and those that do nothing for
// requests that they have. It asks them at most once in pulseEvery, however many want to know.
type pulse struct {
	// hung is for how long an engine that has requests may do nothing. It is longer than a client
	// may take for a piece of an answer, for which the engine waits.
	hung time.Duration

	mu    sync.Mutex
	asked time.Time
	ill   map[string]error // by model
	seen  map[string]sighting
}

// sighting is what an engine had done, and since when it has done no more.
type sighting struct {
	done  progress
	since time.Time
}

// progress is what an engine has done. It stays as it is only while the engine does nothing.
type progress struct {
	steps, rows, failed, waves, granted, deviceNS int64
	reads                                         int64
	queued, running                               int
}

func progressOf(s *moeflux.Stats) progress {
	return progress{
		s.Steps, s.Rows, s.FailedSteps, s.WavesSubmitted, s.Admission.Granted, s.ComputeNS,
		s.Reads.Ended, s.Reads.Queued, s.Reads.Running,
	}
}

// The times of a pulse. A layer of a long prompt takes seconds where all its experts come from a
// slow disk, but each of their reads is progress.
const (
	pulseEvery = time.Second
	hungAfter  = 2 * time.Minute
)

// Alive reports whether the engines that are in memory answer before ctx ends; the error names one
// that does not. It is for whoever would restart the program then.
func (s *Server) Alive(ctx context.Context) error {
	for i := range s.models {
		if _, err := s.askEngine(ctx, &s.models[i]); err != nil {
			return err
		}
	}
	return nil
}

// askEngine returns the figures of a model's engine; nil if it has none in memory.
func (s *Server) askEngine(ctx context.Context, m *Served) (*moeflux.Stats, error) {
	e := m.Watched()
	if e == nil {
		return nil, nil
	}
	stats, err := e.Stats(ctx)
	if _, lent := m.Model.(models.Lent); lent && errors.Is(err, moeflux.ErrClosed) {
		return nil, nil // it was unloaded meanwhile
	}
	if err != nil {
		return nil, fmt.Errorf("the engine of %s does not answer: %w", m.Name, err)
	}
	return stats, nil
}

// ill returns the models whose engines are not whole, and why.
func (s *Server) ill() map[string]error {
	p := &s.pulse
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := time.Now(); p.asked.IsZero() || now.Sub(p.asked) >= pulseEvery {
		before := p.ill
		p.ill = s.examine(now)
		for name, err := range p.ill {
			if before[name] == nil {
				s.o.Logger.Error("an engine is not whole", "model", name, "error", err)
			}
		}
		p.asked = time.Now()
	}
	return maps.Clone(p.ill)
}

// examine asks all engines at once. The caller holds the lock of the pulse.
func (s *Server) examine(now time.Time) map[string]error {
	ctx, cancel := context.WithTimeout(s.base, models.StatsTime)
	defer cancel()
	stats, errs := make([]*moeflux.Stats, len(s.models)), make([]error, len(s.models))
	var asking sync.WaitGroup
	for i := range s.models {
		asking.Go(func() { stats[i], errs[i] = s.askEngine(ctx, &s.models[i]) })
	}
	asking.Wait()
	ill, busy := make(map[string]error), s.underWay.BusySince()
	for i := range s.models {
		name, err := s.models[i].Name, errs[i]
		if stats[i] != nil {
			err = s.pulse.look(name, progressOf(stats[i]), busy[name], now)
		}
		if err != nil {
			ill[name] = err
		}
	}
	return ill
}

// look notes what an engine has done. The error says that it does nothing, though it has had a
// request since busy, which is zero if it has none.
func (p *pulse) look(model string, done progress, busy, now time.Time) error {
	seen := p.seen[model]
	if seen.done != done || seen.since.IsZero() {
		p.seen[model] = sighting{done, now}
		return nil
	}
	if busy.IsZero() || now.Sub(busy) < p.hung || now.Sub(seen.since) < p.hung {
		return nil
	}
	return fmt.Errorf("the engine of %s has requests and has done nothing for %v", model, now.Sub(seen.since).Round(time.Second))
}
