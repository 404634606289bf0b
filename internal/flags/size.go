package flags

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Size is an amount of memory as given on the command line: bytes, or a share of the machine's
// memory.
type Size struct {
	Bytes   int64
	Percent float64
}

var sizeUnits = []struct {
	suffix string
	bytes  float64
}{ // longest first, since "B" ends them all
	{"kib", 1 << 10}, {"mib", 1 << 20}, {"gib", 1 << 30}, {"tib", 1 << 40},
	{"kb", 1e3}, {"mb", 1e6}, {"gb", 1e9}, {"tb", 1e12}, {"b", 1}, {"", 1},
}

// UnmarshalText reads "8GiB", "512MB", "1.5GiB", "1073741824" or "50%".
func (s *Size) UnmarshalText(text []byte) error {
	in := strings.ToLower(strings.TrimSpace(string(text)))
	if number, ok := strings.CutSuffix(in, "%"); ok {
		p, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if err != nil || !(p > 0 && p <= 100) {
			return fmt.Errorf("%q is not a share above 0%% and at most 100%%", text)
		}
		*s = Size{Percent: p}
		return nil
	}
	for _, u := range sizeUnits {
		number, ok := strings.CutSuffix(in, u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		// hexadecimal, exponents, NaN, Inf and signs
		if err != nil || strings.ContainsAny(number, "xpen_+-") {
			break
		}
		b := n * u.bytes
		if b != 0 && b < 1 || b >= math.MaxInt64 {
			return fmt.Errorf("%q is %g bytes; give 0 for the default, or 1 byte to 8 EiB", text, b)
		}
		*s = Size{Bytes: int64(b)}
		return nil
	}
	return fmt.Errorf("%q is not a size like 8GiB, 512MB, 1073741824 or 50%%", text)
}

// String returns the size as the command line takes it.
func (s Size) String() string {
	if s.Percent > 0 {
		return strconv.FormatFloat(s.Percent, 'f', -1, 64) + "%"
	}
	return strconv.FormatInt(s.Bytes, 10)
}

// Resolve returns the bytes meant; 0 stands for the default. total returns the machine's memory.
func (s Size) Resolve(total func() (int64, error)) (int64, error) {
	if s.Percent == 0 {
		return s.Bytes, nil
	}
	t, err := total()
	if err != nil {
		return 0, fmt.Errorf("the machine's memory is unknown, give bytes instead of a percentage: %w", err)
	}
	return int64(float64(t) * s.Percent / 100), nil
}
