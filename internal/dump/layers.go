package dump

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ParseLayers reads a list of layers of a model with n: numbers and ranges, like "0,7,12-", where a
// range without an end goes to the last layer.
func ParseLayers(text string, n int) ([]int, error) {
	var all []int
	for part := range strings.SplitSeq(text, ",") {
		from, to, err := parseRange(part, n)
		if err != nil {
			return nil, err
		}
		for l := from; l <= to; l++ {
			all = append(all, l)
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

func parseRange(text string, n int) (from, to int, err error) {
	first, last, ranged := strings.Cut(text, "-")
	from, err = strconv.Atoi(first)
	to = from
	if ranged {
		to = n - 1
		if last != "" && err == nil {
			to, err = strconv.Atoi(last)
		}
	}
	switch {
	case err != nil:
		return 0, 0, fmt.Errorf("%q is not a layer or a range of layers, like 7, 3-5 or 12-", text)
	case from < 0 || to >= n || from > to:
		return 0, 0, fmt.Errorf("layers %s: the model has layers 0 to %d", text, n-1)
	}
	return from, to, nil
}
