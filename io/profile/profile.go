package profile

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

const (
	// Horizon is the most rows that a profile counts, of one run or of many.
	Horizon = 1 << 16
	// HalfLife is after how many new rows the older ones count half. It is long enough that an
	// expert of a hundred is still counted hundreds of times, and short enough that some hundred
	// answers of a hundred tokens outweigh whatever was counted before.
	HalfLife = 1 << 12
	// MaxKeys bounds layers times experts, in case a file's header is wrong.
	MaxKeys = 1 << 22
)

// Profile counts the rows that used each expert. All counts fade together, so they remain shares of
// the rows.
type Profile struct {
	Layers, Experts int      // layers, including those without experts, and experts of each
	Rows            uint32   // that were counted
	Uses            []uint32 // [layers, experts]: rows that picked the expert, at most Rows
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
		return fmt.Errorf("profile: %d layers of %d experts; there must be 1 or more of each, and at most %d experts in all", layers, experts, MaxKeys)
	}
	return nil
}

// ErrSize reports counts for a different number of experts.
var ErrSize = errors.New("profile: wrong number of counts")

// Merge adds the counts of some rows, [layers, experts]. Older counts fade by half with every
// HalfLife rows that are new, and a run of more than Horizon rows is scaled down. An expert counts
// at most once a row, and a negative count is 0.
//
// Counts fade with every merge, and not only once the profile is full: most runs are short, and
// what one long run counted would otherwise outweigh hundreds of later ones.
func (p *Profile) Merge(rows int64, uses []int64) error {
	if len(uses) != len(p.Uses) {
		return fmt.Errorf("%w: %d for a profile of %d layers of %d experts", ErrSize, len(uses), p.Layers, p.Experts)
	}
	if rows <= 0 {
		return nil
	}
	added := float64(min(rows, Horizon))
	fade := math.Exp2(-added / HalfLife)
	// A short run takes less than half a row from a small count. Rounding to the nearest number
	// would keep that count for ever, so all are rounded up or down by the same chance: right on
	// average, and in the same order.
	chance := rand.Float64()
	sum := func(old uint32, new float64) uint32 {
		return uint32(float64(old)*fade + new + chance)
	}
	scale := added / float64(rows)
	p.Rows = min(sum(p.Rows, added), Horizon)
	for k, n := range uses {
		p.Uses[k] = min(sum(p.Uses[k], float64(max(0, min(n, rows)))*scale), p.Rows)
	}
	return nil
}

// Share returns the share of rows that used the expert with this key, layer·Experts + expert; 0 if
// there are no rows.
func (p *Profile) Share(key int) float64 {
	if p.Rows == 0 {
		return 0
	}
	return float64(p.Uses[key]) / float64(p.Rows)
}

// Hottest returns the keys of the n most used experts, most used first, and the smaller key first
// among equals. It leaves out experts that were never used.
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
