package sample

import "math"

// cut weighs the candidates and applies top-p and min-p. The result shares c's memory, has at least
// one element, and no weight is 0. best is the largest logit.
func cut(c []candidate, best float64, o *Options) []candidate {
	minWeight := 0.0
	if !o.cutsByMass() {
		minWeight = o.MinP // nothing needs the sum over the tokens that it drops
	}
	n := 0
	for _, x := range c {
		x.weight = math.Exp((x.logit - best) / o.Temperature)
		if x.weight > 0 && x.weight >= minWeight {
			c[n] = x
			n++
		}
	}
	c = c[:n]
	if o.cutsByMass() {
		c = cutByMass(c, o)
	}
	return c
}

// cutByMass applies top-p and then min-p. The result is in order.
func cutByMass(c []candidate, o *Options) []candidate {
	all := total(c)
	// Tokens lighter than their share of what top-p leaves out cannot be among those it keeps: all
	// of them together weigh less than that. Half of it leaves room for rounding. Few remain to be
	// ordered.
	floor := 0.5 * (1 - o.TopP) * all / float64(len(c))
	n := 0
	for _, x := range c {
		if x.weight >= floor {
			c[n] = x
			n++
		}
	}
	want, sum := o.TopP*all, 0.0
	c = moveBest(c[:n], func(_ int, last candidate) bool {
		sum += last.weight
		return sum < want
	})
	n = len(c)
	for n > 1 && c[n-1].weight < o.MinP {
		n--
	}
	return c[:n]
}

func total(c []candidate) float64 {
	sum := 0.0
	for _, x := range c {
		sum += x.weight
	}
	return sum
}
