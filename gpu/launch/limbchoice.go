package launch

import "slices"

// limbShapes are all shapes that a product is launched in, whatever its rows, in which a
// threadgroup takes at most so many. Each computes a row in the same bits, so any of them serves
// for any other.
func (l limits) limbShapes(tiles, most int, made bool) (all []limbShape) {
	for _, rows := range [...]int{1, 2, 4, limbFew, 2 * limbFew, limbMany, 16 * limbMany} {
		if s := l.limbShape(rows, tiles, made); s.xrows <= most && !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}

// mostPasses bounds how much slower than the best shape one may be that is launched in its place
// while that is compiled: by how many times as often a matrix is read.
const mostPasses = 8

// limbChoice is a launch whose shape is chosen.
type limbChoice struct {
	kernel  string
	defines limbFormat
	cols    int
	more    [5]int // those after the shape's
	rows    int
	tiles   int // of products
	wanted  limbShape
	made    bool // the rows' limbs are there
}

// splits reports whether a launch in a shape is preceded by one that makes limbs.
func (c *limbChoice) splits(s limbShape) bool { return s.split && !c.made }

// limbKernel is the kernel of a shape.
func (x *encoder) limbKernel(c *limbChoice, s limbShape) *known {
	d, m := &c.defines, &c.more
	switch c.kernel {
	case "limbs_matmul":
		return x.kernel(c.kernel, d.coding, d.group, d.layout, d.wide, d.rounded, c.cols, s.xrows, s.tiles, flag(s.staged), flag(s.split), m[0])
	case "limbs_swiglu":
		return x.kernel(c.kernel, d.coding, d.group, d.layout, d.wide, d.rounded, c.cols, s.xrows, flag(s.split), m[0])
	}
	return x.kernel(c.kernel, d.coding, d.group, d.layout, d.wide, d.rounded, c.cols, s.xrows, s.tiles,
		flag(s.staged), flag(s.split), m[0], m[1], m[2], m[3], m[4])
}

// others are the shapes that serve in place of the one that is wanted.
func (x *encoder) others(c *limbChoice) (all []limbShape) {
	switch c.kernel {
	case "limbs_matmul":
		all = x.d.limits.limbShapes(c.tiles, limbMany, c.made)
	case "limbs_swiglu":
		all = x.d.limits.limbShapes(c.tiles, 2*limbFew, c.made)
	default:
		if c.wanted.staged { // no other kernel takes as many pairs
			break
		}
		for _, split := range [...]bool{c.wanted.split, !c.wanted.split} {
			all = append(all, limbShape{xrows: limbFew, tiles: 2, split: split})
		}
	}
	return slices.DeleteFunc(all, func(s limbShape) bool { return s == c.wanted })
}

// chooseShape returns the shape that is wanted and its kernel, if that is compiled. If it is not,
// it returns the best one whose kernel is, so that nothing waits for the compiler. If there is none
// it is the one that is wanted, too. The others are compiled in the background.
func (x *encoder) chooseShape(c *limbChoice) (limbShape, Kernel) {
	k, a := x.limbKernel(c, c.wanted), x.d.ahead
	if a.most == 0 || k.settled {
		return c.wanted, k.Kernel
	}
	split := x.splitKernel(c.defines)
	if x.pipelines[k.Kernel] != nil && (!c.splits(c.wanted) || x.pipelines[split] != nil) {
		k.settled = !c.made
		return c.wanted, k.Kernel
	}
	best, others := c.wanted, x.others(c)
	if !a.ready(k.Kernel) || c.splits(c.wanted) && !a.ready(split) {
		best = x.bestReady(c, others, split)
	}
	if best != c.wanted {
		a.want(k.Kernel)
	}
	for _, s := range others {
		a.want(x.limbKernel(c, s).Kernel)
	}
	if !best.split && !c.made {
		a.want(split)
	}
	return best, x.limbKernel(c, best).Kernel
}

// bestReady returns, of other shapes, the one whose kernels are compiled that reads the matrix
// least often, or the one that is wanted if none will do.
func (x *encoder) bestReady(c *limbChoice, others []limbShape, split Kernel) limbShape {
	best, passes := c.wanted, mostPasses*ceil(c.rows, c.wanted.xrows)+1
	for _, s := range others {
		n := ceil(c.rows, s.xrows)
		if n < passes && x.d.ahead.ready(x.limbKernel(c, s).Kernel) && (!c.splits(s) || x.d.ahead.ready(split)) {
			best, passes = s, n
		}
	}
	return best
}
