package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/moeflux/moeflux-actor/internal/figures"
)

// size is an amount of memory as given on the command line: bytes, or a share of the machine's
// memory.
type size struct {
	bytes   int64
	percent float64
}

var sizeUnits = []struct {
	suffix string
	bytes  float64
}{ // longest first, since "B" ends them all
	{"kib", 1 << 10}, {"mib", 1 << 20}, {"gib", 1 << 30}, {"tib", 1 << 40},
	{"kb", 1e3}, {"mb", 1e6}, {"gb", 1e9}, {"tb", 1e12}, {"b", 1}, {"", 1},
}

// UnmarshalText reads "8GiB", "512MB", "1.5GiB", "1073741824" or "50%".
func (s *size) UnmarshalText(text []byte) error {
	in := strings.ToLower(strings.TrimSpace(string(text)))
	if number, ok := strings.CutSuffix(in, "%"); ok {
		p, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if err != nil || !(p > 0 && p <= 100) {
			return fmt.Errorf("%q is not a share above 0%% and at most 100%%", text)
		}
		*s = size{percent: p}
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
		*s = size{bytes: int64(b)}
		return nil
	}
	return fmt.Errorf("%q is not a size like 8GiB, 512MB, 1073741824 or 50%%", text)
}

// String returns the size as the command line takes it.
func (s size) String() string {
	if s.percent > 0 {
		return strconv.FormatFloat(s.percent, 'f', -1, 64) + "%"
	}
	return strconv.FormatInt(s.bytes, 10)
}

// resolve returns the bytes meant; 0 stands for the default. total returns the machine's memory.
func (s size) resolve(total func() (int64, error)) (int64, error) {
	if s.percent == 0 {
		return s.bytes, nil
	}
	t, err := total()
	if err != nil {
		return 0, fmt.Errorf("the machine's memory is unknown, give bytes instead of a percentage: %w", err)
	}
	return int64(float64(t) * s.percent / 100), nil
}

// formatBytes writes n with three significant digits.
func formatBytes(n int64) string { return figures.Bytes(n) }

// counted writes a number and its noun: 1 read, 2 reads.
func counted[N int | int64](n N, noun string) string { return figures.Counted(n, noun) }
