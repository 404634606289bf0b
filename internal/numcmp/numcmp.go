package numcmp

import (
	"fmt"
	"math"
	"strings"
)

// Float is a type that can be compared. Got and wanted may differ in type: float32 results and a
// float64 reference.
type Float interface{ ~float32 | ~float64 }

// listed is how many differences an error lists.
const listed = 4

// Difference is one element out of bounds. Off and Limit are in the rule's unit.
type Difference struct {
	Index      int
	Got, Want  float64
	Off, Limit float64
}

func (d Difference) String() string {
	return fmt.Sprintf("[%d] got %.9g, want %.9g: off by %.4g, limit %.4g", d.Index, d.Got, d.Want, d.Off, d.Limit)
}

// Mismatch reports values that differ by more than a rule allows.
type Mismatch struct {
	Rule  string // what was compared, "relative 1e-06 + absolute 0"
	Len   int    // elements compared
	Count int    // elements out of bounds
	Worst Difference
	First []Difference // the first few
}

func (m *Mismatch) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %d values differ (%s); worst %v", m.Count, m.Len, m.Rule, m.Worst)
	if m.Count > 1 {
		b.WriteString("; first")
		for _, d := range m.First {
			fmt.Fprintf(&b, " %v;", d)
		}
	}
	return strings.TrimSuffix(b.String(), ";")
}

// LengthError reports lists that cannot be compared.
type LengthError struct{ Got, Want int }

func (e *LengthError) Error() string {
	return fmt.Sprintf("got %d values, want %d", e.Got, e.Want)
}

// compare calls off for each element, which returns how far off it is and how far off it may be.
// More than that, or NaN, is a mismatch.
func compare[G, W Float](rule string, got []G, want []W, off func(i int, g, w float64) (off, limit float64)) error {
	if len(got) != len(want) {
		return &LengthError{len(got), len(want)}
	}
	var m *Mismatch
	for i := range got {
		g, w := float64(got[i]), float64(want[i])
		d := Difference{Index: i, Got: g, Want: w}
		d.Off, d.Limit = off(i, g, w)
		if d.Off == 0 || d.Off <= d.Limit {
			continue
		}
		if m == nil {
			m = &Mismatch{Rule: rule, Len: len(got), Worst: d}
		}
		m.Count++
		if len(m.First) < listed {
			m.First = append(m.First, d)
		}
		if worse(d, m.Worst) {
			m.Worst = d
		}
	}
	if m == nil {
		return nil
	}
	return m
}

// worse reports whether a exceeds its limit by a greater factor than b; NaN exceeds everything.
func worse(a, b Difference) bool {
	if math.IsNaN(b.Off) {
		return false
	}
	return math.IsNaN(a.Off) || a.Off*max(b.Limit, math.SmallestNonzeroFloat64) > b.Off*max(a.Limit, math.SmallestNonzeroFloat64)
}

// same reports whether two values are equal whatever the tolerance: the same number, the same
// infinity, or two NaNs.
func same(g, w float64) bool { return g == w || math.IsNaN(g) && math.IsNaN(w) }

// distance is |g-w|. It is 0 for the same values, and NaN where it has no meaning, so that no limit
// admits it.
func distance(g, w float64) float64 {
	switch {
	case same(g, w):
		return 0
	case math.IsInf(g, 0) || math.IsInf(w, 0):
		return math.NaN()
	}
	return math.Abs(g - w)
}

// Near requires |got-want| <= absolute + relative·|want|.
func Near[G, W Float](got []G, want []W, absolute, relative float64) error {
	rule := fmt.Sprintf("absolute %g + relative %g", absolute, relative)
	return compare(rule, got, want, func(_ int, g, w float64) (float64, float64) {
		return distance(g, w), absolute + relative*math.Abs(w)
	})
}

// Scaled requires |got-want| <= relative·scale[i]. The scale of a sum is the sum of its terms'
// magnitudes, to which rounding is proportional where the sum itself cancels.
func Scaled[G, W Float](got []G, want []W, scale []float64, relative float64) error {
	if len(scale) != len(want) {
		return &LengthError{len(scale), len(want)}
	}
	return compare(fmt.Sprintf("%g of the scale", relative), got, want, func(i int, g, w float64) (float64, float64) {
		return distance(g, w), relative * scale[i]
	})
}

// Equal requires the same bits, except that all NaNs are equal. -0 is not 0.
func Equal(got, want []float32) error {
	return compare("same bits", got, want, func(_ int, g, w float64) (float64, float64) {
		if same(g, w) && math.Signbit(g) == math.Signbit(w) || math.IsNaN(g) && math.IsNaN(w) {
			return 0, 0
		}
		return max(1, float64(ULP(float32(g), float32(w)))), 0
	})
}

// Within requires got and want to be at most ulps float32 values apart.
func Within(got, want []float32, ulps int64) error {
	return compare(fmt.Sprintf("%d ULP", ulps), got, want, func(_ int, g, w float64) (float64, float64) {
		return float64(ULP(float32(g), float32(w))), float64(ulps)
	})
}

// ULP returns how many float32 steps lie between a and b. It is 0 for equal values, zeros of both
// signs, and two NaNs, and the largest int64 if only one is a NaN.
func ULP(a, b float32) int64 {
	nanA, nanB := a != a, b != b
	switch {
	case nanA && nanB:
		return 0
	case nanA || nanB:
		return math.MaxInt64
	}
	d := ordered(a) - ordered(b)
	return max(d, -d)
}

// ordered maps each float32 to its place among all of them in order.
func ordered(f float32) int64 {
	b := int64(math.Float32bits(f))
	if b < 1<<31 {
		return b
	}
	return 1<<31 - b
}

// Cosine returns the cosine of the angle between two vectors, computed in float64. It is 1 if both
// are zero, 0 if one is, and NaN if a value is not finite or the lengths differ.
func Cosine[A, B Float](a []A, b []B) float64 {
	if len(a) != len(b) {
		return math.NaN()
	}
	var ab, aa, bb float64
	for i := range a {
		x, y := float64(a[i]), float64(b[i])
		ab += x * y
		aa += x * x
		bb += y * y
	}
	switch {
	case math.IsNaN(ab + aa + bb), math.IsInf(aa, 0), math.IsInf(bb, 0):
		return math.NaN()
	case aa == 0 && bb == 0:
		return 1
	case aa == 0 || bb == 0:
		return 0
	}
	return ab / math.Sqrt(aa) / math.Sqrt(bb)
}

// CosineError reports vectors that point in different directions.
type CosineError struct{ Got, Least float64 }

func (e *CosineError) Error() string {
	return fmt.Sprintf("cosine %.9f, want at least %.9f", e.Got, e.Least)
}

// Aligned requires Cosine(got, want) >= least.
func Aligned[G, W Float](got []G, want []W, least float64) error {
	if len(got) != len(want) {
		return &LengthError{len(got), len(want)}
	}
	if c := Cosine(got, want); !(c >= least) {
		return &CosineError{c, least}
	}
	return nil
}

// MaxRelative returns max|got-want| / max|want|: the error against the largest value. It is NaN if
// the lengths differ or a difference has no meaning.
func MaxRelative[G, W Float](got []G, want []W) float64 {
	if len(got) != len(want) {
		return math.NaN()
	}
	var off, top float64
	for i := range got {
		w := float64(want[i])
		off = max(off, distance(float64(got[i]), w)) // max of a NaN is NaN
		top = max(top, math.Abs(w))
	}
	if off == 0 {
		return 0
	}
	return off / top
}
