package tune

import (
	"fmt"
	"time"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/tuned"
)

// Keep makes the file of tuned settings what the result says: those that were chosen, or none if
// the defaults stay. It changes nothing if the search did not come to its end. cfg is what was
// tuned, with an open device and without tuned settings.
func (r *Result) Keep(path string, cfg *actors.Config, at time.Time) (err error) {
	r.Kept.Path = path
	set := r.Chosen()
	switch {
	case !r.Final():
		return nil
	case set == tuned.Settings{}:
		if r.Kept.Removed, err = tuned.Remove(path); err != nil {
			err = fmt.Errorf("the settings that were kept before cannot be removed, give --tuned off: %w", err)
		}
		return err
	}
	info, err := actors.Plan(*cfg)
	if err != nil {
		return err
	}
	v := r.Verdict
	k, err := tuned.New(cfg, &info, set, tuned.Found{Gain: v.Gain, Pairs: len(v.Pairs), Test: v.Test, P: v.P, At: at})
	if err == nil {
		err = k.Save(path)
	}
	if err != nil {
		return fmt.Errorf("the settings cannot be kept, so give them as flags, or make room for %s: %w", path, err)
	}
	r.Kept.Saved = true
	return nil
}
