package testenv

import (
	"iter"
	"os"
	"slices"
)

// Settings yields combinations of several settings, given how many values each has, as indices of
// the values. Each value of a setting meets each value of every other one in some combination: few
// faults need three settings to show. Under Thorough Settings yields all combinations.
func Settings(values ...int) iter.Seq[[]int] {
	every := combinations(values)
	if os.Getenv(Thorough) == "1" {
		return slices.Values(every)
	}
	return func(yield func([]int) bool) {
		met := map[meeting]bool{}
		for {
			best := slices.MaxFunc(every, func(a, b []int) int { return news(a, met) - news(b, met) })
			if news(best, met) == 0 || !yield(best) {
				return
			}
			for m := range meetings(best) {
				met[m] = true
			}
		}
	}
}

// meeting is a value of a setting, and one of a later setting, in the same combination.
type meeting struct{ setting, value, other, otherValue int }

func meetings(combination []int) iter.Seq[meeting] {
	return func(yield func(meeting) bool) {
		for i, a := range combination {
			for j := i + 1; j < len(combination); j++ {
				if !yield(meeting{i, a, j, combination[j]}) {
					return
				}
			}
		}
	}
}

// news returns how many meetings of a combination are not in met.
func news(combination []int, met map[meeting]bool) int {
	n := 0
	for m := range meetings(combination) {
		if !met[m] {
			n++
		}
	}
	return n
}

func combinations(values []int) [][]int {
	all := [][]int{nil}
	for _, n := range values {
		var longer [][]int
		for _, c := range all {
			for v := range n {
				longer = append(longer, append(slices.Clone(c), v))
			}
		}
		all = longer
	}
	return all
}
