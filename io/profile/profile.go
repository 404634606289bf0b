package profile

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

const (
	// Horizon is the rows that a profile counts at most. What was counted before fades as more
	// comes.
	Horizon = 1 << 16
	// MaxKeys bounds layers times experts, for files that lie.
	MaxKeys = 1 << 22
)

// Profile is how many of some rows used each expert. The counts fade together, so they are shares
// of rows with some precision.
type Profile struct {
	Layers, Experts int      // layers, those without experts have zeros, and experts of each
	Rows            uint32   // that the counts are of
	Uses            []uint32 // [layers, experts]: rows that picked it, at most Rows
}

// New returns a profile of no rows.
func New(layers, experts int) (*Profile, error) {
	if err := checkSize(layers, experts); err != nil {
		return nil, err
	}
	return &Profile{Layers: layers, Experts: experts, Uses: make([]uint32, layers*experts)}, nil
}

func checkSize(layers, experts int) error {
	if layers < 1 || experts < 1 || layers > MaxKeys/experts {
		return fmt.Errorf("profile: %d layers of %d experts, want 1 or more of each and at most %d together", layers, experts, MaxKeys)
	}
	return nil
}

// ErrSize reports counts of another number of layers or experts.
var ErrSize = errors.New("profile: counts of another number of experts")

// Merge adds the counts of so many rows, [layers, experts]. Together they count at most Horizon
// rows: what was known before fades to make room, and of a longer run than that the shares alone
// remain. An expert counts at most once a row; negative counts are none.
func (p *Profile) Merge(rows int64, uses []int64) error {
	if len(uses) != len(p.Uses) {
		return fmt.Errorf("%w: %d, the profile has %d layers of %d", ErrSize, len(uses), p.Layers, p.Experts)
	}
	if rows <= 0 {
		return nil
	}
	added := min(rows, Horizon)
	kept := min(int64(p.Rows), Horizon-added)
	fade := 0.0
	if p.Rows > 0 {
		fade = float64(kept) / float64(p.Rows)
	}
	scale := float64(added) / float64(rows)
	for k, n := range uses {
		sum := float64(p.Uses[k])*fade + float64(max(0, min(n, rows)))*scale
		p.Uses[k] = uint32(min(math.Round(sum), float64(kept+added)))
	}
	p.Rows = uint32(kept + added)
	return nil
}

// Share returns the share of rows that used the expert with this key, layer·Experts + expert; 0 of
// no rows.
func (p *Profile) Share(key int) float64 {
	if p.Rows == 0 {
		return 0
	}
	return float64(p.Uses[key]) / float64(p.Rows)
}

// Hottest returns the keys of the n experts used most, most first, of equal ones the smaller first;
// experts that were never used are not among them.
func (p *Profile) Hottest(n int) []int {
	var keys []int
	for k, uses := range p.Uses {
		if uses > 0 {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b int) int {
		return cmp.Or(cmp.Compare(p.Uses[b], p.Uses[a]), cmp.Compare(a, b))
	})
	return keys[:max(0, min(n, len(keys)))]
}
