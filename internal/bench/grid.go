package bench

import (
	"fmt"
	"slices"
	"strings"
)

// defaultGrid is raced where nobody says what.
var defaultGrid = []Axis{
	{Name: "ring-depth", Values: []string{"1", "2"}}, {Name: "read-workers", Values: []string{"4", "8"}}, {Name: "prefetch", Values: []string{"off", "both"}},
}

// Grid returns all combinations of a grid, whose axes are written as NAME=VALUE,VALUE; of none,
// those of a default. The text of an error begins with what is wrong: the caller says before it how
// the grid was given.
func Grid(grid []string) ([]*SweepSetting, error) {
	if len(grid) == 0 {
		return combinations(defaultGrid)
	}
	var axes []Axis
	for _, g := range grid {
		name, list, ok := strings.Cut(g, "=")
		values := strings.Split(list, ",")
		if !ok || slices.Contains(values, "") {
			return nil, fmt.Errorf("%q must be NAME=VALUE,VALUE", g)
		}
		if slices.ContainsFunc(axes, func(a Axis) bool { return a.Name == name }) {
			return nil, fmt.Errorf("names %s twice", name)
		}
		for i, v := range values {
			if slices.Contains(values[:i], v) {
				return nil, fmt.Errorf("%s names %s twice", name, v)
			}
		}
		axes = append(axes, Axis{Name: name, Values: values})
	}
	return combinations(axes)
}

// combinations returns all combinations of the axes' values.
func combinations(axes []Axis) ([]*SweepSetting, error) {
	all := []*SweepSetting{{Flags: Flags{}}}
	for _, axis := range axes {
		var more []*SweepSetting
		for _, s := range all {
			for _, v := range axis.Values {
				n := &SweepSetting{Flags: Flags{axis.Name: v}, Args: append(slices.Clone(s.Args), axis.Name+"="+v)}
				for name, value := range s.Flags {
					n.Flags[name] = value
				}
				more = append(more, n)
			}
		}
		if all = more; len(all) > sweepMost {
			return nil, fmt.Errorf("makes more than %d combinations", sweepMost)
		}
	}
	return all, nil
}
