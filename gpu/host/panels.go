package host

import (
	"unsafe"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/model/quant"
)

const (
	panelRows = quant.PanelRows
	maxTile   = 6  // most rows of X that a kernel takes
	lineBytes = 64 // of a cache line
	// bytes of X that stay in the second-level cache beside the panels that multiply them
	blockX = 256 << 10
	chunkW = 3 * blockX / 2 // most bytes of W in a chunk, where X comes in several blocks
)

// panelArgs is what a panelKernel computes:
//
//	y[r][o] = Σ_g Σ_i w[o, i]·x[r][i]   over the groups g of inputs i, for the 16 rows o of each of its panels
//
// The generator knows the offsets of the fields.
type panelArgs struct {
	w              unsafe.Pointer // codes of the first panel
	wStep          int            // bytes to those of the second
	scales, biases unsafe.Pointer // of the first panel
	sStep          int            // bytes to those of the second, both; biases only if the coding has them
	cols           int            // inputs
	group          int            // inputs that share a scale
	groupBytes     int            // of a group's codes in a panel
	yStep          int            // bytes from the first panel's outputs to the second's
	rows           int            // of X, as many as the kernel takes
	// x are rows of X. A row is float32 [cols]; or it is int8 [cols], followed for each group by
	// float32 s, the scale, and S, s times the sum of the group's int8.
	x [maxTile]unsafe.Pointer
	y [maxTile]unsafe.Pointer // float32 [16], and again at yStep

	far farCodes // of one row held as int8, with AVX2 or AVX-512
}

// panelKernel multiplies panels by rows of X. a points to a panelArgs.
type panelKernel func(a *byte)

// panelScratch is one thread's memory for products of panels.
type panelScratch struct {
	args                  panelArgs
	codes, scales, biases []byte // of two panels arranged from rows
	filled                matrix // see fill
	rows                  [3][]byte
	y                     [maxTile][2 * panelRows]float32
	tiles                 tileScratch
	far                   farChoice
}

// growBytes is grow for bytes. They begin at a multiple of lineBytes.
func growBytes(b *[]byte, n int) []byte {
	if cap(*b) < n {
		mem := make([]byte, max(n, 2*cap(*b))+lineBytes)
		skip := -uintptr(unsafe.Pointer(&mem[0])) % lineBytes
		*b = mem[skip:]
	}
	return (*b)[:n]
}

// fill returns a matrix of the rows of w from panel p on, which are too few for a panel, filled up
// with rows of zeros: assembly arranges whole panels many times faster than Go.
func (s *panelScratch) fill(w *matrix, p int) *matrix {
	first := p * panelRows
	part := func(mem *[]byte, from []byte, rowBytes int) []byte {
		dst := growBytes(mem, panelRows*rowBytes)
		clear(dst[copy(dst, from[first*rowBytes:w.rows*rowBytes]):])
		return dst
	}
	m := &s.filled
	*m = matrix{rows: panelRows, cols: w.cols, format: w.format, rowBytes: w.rowBytes}
	m.weight, m.scales = part(&s.rows[0], w.weight, w.rowBytes), part(&s.rows[1], w.scales, w.format.ScaleBytes(1, w.cols))
	if len(w.biases) > 0 {
		m.biases = part(&s.rows[2], w.biases, w.format.BiasBytes(1, w.cols))
	}
	return m
}

// mulPanels computes out[i, o] = W[o]·in[i] for rows i0 ≤ i < i1 of X and the rows o of W in panels
// p0 ≤ p < p1. It takes rows of X in blocks, so that a block stays in the cache while all panels
// pass.
func (k *kernels) mulPanels(s *panelScratch, w *matrix, p0, p1 int, in, out *rowList, i0, i1 int) {
	a := &s.args
	a.cols, a.group, a.groupBytes = w.cols, w.format.Group(), w.format.WeightBytes(panelRows, w.format.Group())
	per := i1 - i0
	if w.format.Layout == quant.Panels { // other layouts are arranged once for all rows
		blocks := chunks(per, max(maxTile, blockX/in.width))
		per = chunks(per, blocks)
	}
	table := k.codings[w.format.Coding()].floats
	if in.int8s {
		table = k.codings[w.format.Coding()].int8s
	}
	tiled := k.tiles != nil && in.int8s && w.format.Affine() && w.format.Coding().ScaleBytes() == 2
	for ; i0 < i1; i0 += per {
		end := min(i0+per, i1)
		if tiled && end-i0 >= leastTiled {
			k.mulTiled(s, w, p0, p1, in, out, i0, end)
			continue
		}
		if end-i0 == 1 && k.far.step > 0 && in.int8s {
			k.mulRow(s, table, w, p0, p1, in, out, i0)
			continue
		}
		step := k.pair
		if end-i0 == 1 {
			step = 1
		}
		for p := p0; p < p1; p += step {
			k.loadPanels(s, w, p, min(step, p1-p))
			k.mulLoaded(s, table, w, p, in, out, i0, end)
		}
	}
}

// mulRow is mulPanels for one row held as int8, by a kernel that prefetches far ahead.
func (k *kernels) mulRow(
	s *panelScratch, table []panelKernel, w *matrix, p0, p1 int, in, out *rowList, i int,
) {
	bytes := 0 // where panels are arranged from rows, there is nothing to fetch
	if w.format.Layout == quant.Panels {
		bytes = w.format.WeightBytes(panelRows*(p1-p0), w.cols)
	}
	s.far.time(bytes, func(pages bool) {
		s.args.far = k.far
		if pages {
			s.args.far = k.byPages(s.args.groupBytes)
		}
		for p := p0; p < p1; p++ {
			k.loadPanels(s, w, p, 1)
			k.mulLoaded(s, table, w, p, in, out, i, i+1)
		}
	})
}

// loadPanels sets s.args to n panels of w from p on.
func (k *kernels) loadPanels(s *panelScratch, w *matrix, p, n int) {
	a, f := &s.args, w.format
	codes, scales, biases := w.weight, w.scales, w.biases
	bytes, scaleBytes, biasBytes := f.WeightBytes(panelRows, w.cols), f.ScaleBytes(panelRows, w.cols), f.BiasBytes(panelRows, w.cols)
	if f.Layout == quant.Rows {
		codes, scales, biases = growBytes(&s.codes, 2*bytes), growBytes(&s.scales, 2*scaleBytes), growBytes(&s.biases, 2*biasBytes)
		for i := range n {
			m, from := w, p+i
			if (from+1)*panelRows > w.rows {
				m, from = s.fill(w, from), 0
			}
			k.arrangePanel(codes[i*bytes:], scales[i*scaleBytes:], biases[i*biasBytes:], m, from)
		}
		p = 0
	}
	codes, scales, biases = codes[p*bytes:(p+n)*bytes], scales[p*scaleBytes:(p+n)*scaleBytes], biases[p*biasBytes:(p+n)*biasBytes]
	a.w, a.scales, a.biases = unsafe.Pointer(&codes[0]), unsafe.Pointer(&scales[0]), unsafe.Pointer(unsafe.SliceData(biases))
	a.wStep, a.sStep, a.yStep = bytes, scaleBytes, 4*panelRows
	if n == 1 { // a kernel for two computes the one twice
		a.wStep, a.sStep, a.yStep = 0, 0, 0
	}
}

// height returns how many of n rows of X the next kernel takes. It leaves no single row where the
// kernel of one row takes fewer panels than the others.
func (k *kernels) height(table []panelKernel, n int) int {
	h := min(n, len(table))
	for table[h-1] == nil || n > h && n-h < k.pair {
		h--
	}
	return h
}

// mulLoaded multiplies the loaded panels, which are those of w from panel p on, by rows i0 ≤ i < i1
// of X.
func (k *kernels) mulLoaded(
	s *panelScratch, table []panelKernel, w *matrix, p int, in, out *rowList, i0, i1 int,
) {
	a := &s.args
	first := p * panelRows
	n := min(panelRows+a.yStep/4, w.rows-first)
	whole := n%panelRows == 0
	var factors []float32
	if w.format.Coding().Factor() {
		factors = gpu.Floats(w.biases, w.rows)[first : first+n]
	}
	for i := i0; i < i1; {
		rows := k.height(table, i1-i)
		a.rows = rows
		for j := range rows {
			a.x[j] = unsafe.Pointer(&in.bytes(i + j)[0])
			if whole {
				a.y[j] = unsafe.Pointer(&out.floats(i + j)[first : first+n][0])
			} else {
				a.y[j] = unsafe.Pointer(&s.y[j][0])
			}
		}
		table[rows-1]((*byte)(unsafe.Pointer(a)))
		if !whole {
			for j := range rows {
				copy(out.floats(i + j)[first:first+n], s.y[j][:n])
			}
		}
		if factors != nil {
			for j := range rows {
				times(out.floats(i + j)[first:first+n], factors)
			}
		}
		i += rows
	}
}

// times multiplies sums of rows by the rows' factors.
func times(y, factors []float32) {
	for o, f := range factors {
		y[o] *= f
	}
}
