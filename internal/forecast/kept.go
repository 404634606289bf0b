package forecast

import (
	"fmt"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/io/synth"
)

// Kept is the share of expert uses that find their expert kept in a slot, and how that is known; ""
// if it is not.
type Kept struct {
	Rate float64
	From string
}

// Text names the tokens that a forecast is for.
type Text struct {
	Config actors.Config // of the engine: the model, its experts, and the profile of their use
	Free   int64         // bytes of memory for experts that are mapped

	// Of a synthetic model, whose law is known: the tokens of its chain from one on, or those that
	// follow a prompt which began with empty slots.
	From, Prompt, Gen int
	Chunk             int  // rows of the prompt that are evaluated together
	Cold              bool // slots are empty at the first token
}

// trained is what a warm cache keeps, by its share of all experts. It was measured with the routers
// of the demo model, which are trained ones, on source code that they had not seen
// (docs/experiments.md, "Which experts stay in memory", the policy that was kept).
var trained = []struct{ share, kept float64 }{{0, 0}, {0.10, 0.376}, {0.25, 0.700}, {0.50, 0.929}, {1, 1}}

// Expect predicts what the slots of an engine with these settings keep.
func Expect(i *actors.Info, t Text) (Kept, error) {
	all := 1
	if i.SlotBytes > 0 {
		all = max(1, int(i.ExpertBytes/int64(i.SlotBytes)))
	}
	switch {
	case i.ExpertIO == actors.ExpertIOMmap && i.ExpertBytes > t.Free:
		return Kept{}, nil // the system decides what stays, page by page
	case !i.ExpertIO.Streams():
		return Kept{1, "since all experts are in memory"}, nil
	case i.Slots >= all: // the engine fills the rest in the background
		return Kept{1, "since every expert has a slot"}, nil
	}
	switch chain, err := synth.Wrote(t.Config.Model); {
	case err != nil:
		return Kept{}, err
	case chain:
		return byLaw(i, t)
	}
	if kept, ok := byProfile(i, t.Config); ok {
		return kept, nil
	}
	share := min(1, float64(i.Slots)/float64(all))
	return Kept{byTraining(share), fmt.Sprintf("assumed: what a warm cache keeps of trained routers' picks, with %.0f%% of all experts", 100*share)}, nil
}

// byProfile is what the slots keep if they hold the experts that earlier runs used most; false if
// no profile of them can be used, of which the engine warns.
func byProfile(i *actors.Info, c actors.Config) (Kept, bool) {
	p, err := actors.ReadProfile(c)
	if err != nil {
		return Kept{}, false
	}
	held, all := 0.0, 0.0
	for _, uses := range p.Uses {
		all += float64(uses)
	}
	for _, key := range p.Hottest(i.Slots) {
		held += float64(p.Uses[key])
	}
	if all == 0 {
		return Kept{}, false
	}
	return Kept{held / all, fmt.Sprintf("if the slots hold what the %d rows of %s used most", p.Rows, c.Profile)}, true
}

// byTraining interpolates in trained.
func byTraining(share float64) float64 {
	for k := 1; k < len(trained); k++ {
		if a, b := trained[k-1], trained[k]; share <= b.share {
			return a.kept + (b.kept-a.kept)*(share-a.share)/(b.share-a.share)
		}
	}
	return 1
}
