package main

import (
	"path/filepath"

	"github.com/moeflux/moeflux-actor/actors"
)

// The values of --profile that are not file names.
const (
	profileOff  = "off"
	profileAuto = "auto"
)

// profilePath returns the file that --profile means for a model, "" for none. Without a folder to
// keep the file in, auto means none: all that is lost is a faster start.
func (f *engineFlags) profilePath(inv *invocation, model string) (string, error) {
	switch f.Profile {
	case "", profileOff:
		return "", nil
	case profileAuto:
		cache, _, err := findCache(inv, f.CacheDir)
		if err != nil {
			return "", nil
		}
		return actors.ProfilePath(filepath.Join(cache, "profiles"), actors.Config{Model: model, ExpertsDir: f.ExpertsDir})
	}
	return f.Profile, nil
}
