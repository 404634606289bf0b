package flags

import (
	"path/filepath"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/process"
)

// The values of --profile that are not file names.
const (
	ProfileOff  = "off"
	ProfileAuto = "auto"
)

// ProfilePath returns the file that --profile means for a model, "" for none. Without a folder to
// keep the file in, auto means none: all that is lost is a faster start.
func (f *Engine) ProfilePath(inv *process.Invocation, model string) (string, error) {
	switch f.Profile {
	case "", ProfileOff:
		return "", nil
	case ProfileAuto:
		cache, _, err := FindCache(inv, f.CacheDir)
		if err != nil {
			return "", nil
		}
		return actors.ProfilePath(filepath.Join(cache, "profiles"), actors.Config{Model: model, ExpertsDir: f.ExpertsDir})
	}
	return f.Profile, nil
}
