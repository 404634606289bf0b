package actors

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/moeflux/moeflux-actor/io/fingerprint"
	"github.com/moeflux/moeflux-actor/io/modelfiles"
	"github.com/moeflux/moeflux-actor/io/profile"
	"github.com/moeflux/moeflux-actor/stages"
)

// usage is the profile of the open model. The zero value means that no profile is kept.
type usage struct {
	path   string
	of     fingerprint.Fingerprint
	update func(path string, of fingerprint.Fingerprint, layers, experts int, rows int64, uses []int64) error
}

// ProfilePath returns where the profile of the model that a Config names lies under a folder of
// profiles, for Config.Profile. The error is that of a model whose files cannot be read.
func ProfilePath(folder string, cfg Config) (string, error) {
	of, err := fingerprint.Of(cfg.Model, cfg.ExpertsDir)
	if err != nil {
		return "", fmt.Errorf("Config.Profile cannot be named after the model in Config.Model: %w", err)
	}
	return profile.Path(folder, of), nil
}

// ReadProfile returns the profile that an engine with this Config would use. Where there is none
// yet, the error is fs.ErrNotExist.
func ReadProfile(cfg Config) (*profile.Profile, error) {
	if cfg.Profile == "" {
		return nil, fs.ErrNotExist
	}
	m, err := modelfiles.Config(cfg.Model)
	if err != nil {
		return nil, err
	}
	of, err := fingerprint.Of(cfg.Model, cfg.ExpertsDir)
	if err != nil {
		return nil, err
	}
	return profile.Load(cfg.Profile, of, len(m.Layers), m.NumExperts)
}

// openProfile returns the share of earlier rows that used each expert, [layers·experts], or nil if
// it is not known. A profile that cannot be used costs a line in the log and nothing more.
func (e *Engine) openProfile(cfg Config) []float64 {
	if cfg.Profile == "" || len(e.model.MoELayers()) == 0 {
		return nil
	}
	of, err := e.identity.own()
	if err != nil {
		e.log.Warn("no profile of the use of experts is kept", "error", err)
		return nil
	}
	e.profile = usage{path: cfg.Profile, of: of, update: profile.Update}
	p, err := profile.Load(cfg.Profile, of, len(e.model.Layers), e.model.NumExperts)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		e.log.Warn("the profile of the use of experts is of no use and will be replaced", "error", err)
		return nil
	}
	chances := make([]float64, len(p.Uses))
	for k := range chances {
		chances[k] = p.Share(k)
	}
	return chances
}

// saveProfile adds this run's uses to the profile. No step may be in flight.
func (e *Engine) saveProfile() {
	if e.profile.path == "" {
		return
	}
	reply := make(chan stages.Message, 1)
	e.rt.Send(stages.Sequencer, &stages.CollectStats{Stats: new(Stats), Caller: reply})
	var st *Stats
	select {
	case a := <-reply:
		st = a.(*stages.CollectStats).Stats
	case <-e.rt.Broken():
		return
	}
	if st.Rows == 0 {
		return
	}
	experts := e.model.NumExperts
	uses := make([]int64, len(st.Layers)*experts)
	for i := range st.Layers {
		copy(uses[i*experts:(i+1)*experts], st.Layers[i].Uses)
	}
	if err := e.profile.update(e.profile.path, e.profile.of, len(st.Layers), experts, st.Rows, uses); err != nil {
		e.log.Warn("the use of experts is not kept for the next run", "error", err)
	}
}
