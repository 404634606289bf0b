package flags

import (
	"path/filepath"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/process"
	"github.com/moeflux/moeflux-actor/io/modelfiles"
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
		path, err := actors.ProfilePath(filepath.Join(cache, "profiles"), actors.Config{Model: model, ExpertsDir: f.ExpertsDir})
		if err == nil {
			return path, nil
		}
		// A model that cannot be read is no matter of its profile.
		if _, why := modelfiles.Config(model); why != nil {
			return "", why
		}
		return "", err
	}
	return f.Profile, nil
}
