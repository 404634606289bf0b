//go:build (amd64 || arm64) && !noasm

package host

// plainCode is the assembly for rows of bf16 and float32, in blocks of blockInputs.
type plainCode struct {
	bf16  func(row *byte, x *float32, blocks int) float32
	last  func(q, x *float32, blocks int) float32
	two   func(q, x0, x1 *float32, blocks int) (float32, float32)
	widen func(dst *float32, row *byte, blocks int)
}

func (c *plainCode) kernels() plainKernels { return plainKernels{two: c.rowTwo, last: c.rowLast} }

// table returns the kernels for codes and those for numbers that stand for themselves. Codes for
// which the variant has none are multiplied by the portable ones.
func (c *plainCode) table(codes codingTable) *codingTable {
	for i := range codes {
		if codes[i].floats == nil {
			codes[i] = portableCodings[i]
		}
	}
	return codes.with(c.rowLast, c.rowBF16, c.rowWiden)
}

func (c *plainCode) rowBF16(row []byte, x []float32) float32 {
	row = row[:2*len(x)]
	var y float32
	n := len(x) / blockInputs
	if n > 0 {
		y = c.bf16(&row[0], &x[0], n)
	}
	if n *= blockInputs; n < len(x) {
		y += dotBF16(row[2*n:], x[n:])
	}
	return y
}

func (c *plainCode) rowLast(q, x []float32) float32 {
	x = x[:len(q)]
	var y float32
	n := len(q) / blockInputs
	if n > 0 {
		y = c.last(&q[0], &x[0], n)
	}
	if n *= blockInputs; n < len(q) {
		y += dot(q[n:], x[n:])
	}
	return y
}

func (c *plainCode) rowTwo(q, x0, x1 []float32) (y0, y1 float32) {
	x0, x1 = x0[:len(q)], x1[:len(q)]
	n := len(q) / blockInputs
	if n > 0 {
		y0, y1 = c.two(&q[0], &x0[0], &x1[0], n)
	}
	if n *= blockInputs; n < len(q) {
		y0 += dot(q[n:], x0[n:])
		y1 += dot(q[n:], x1[n:])
	}
	return y0, y1
}

func (c *plainCode) rowWiden(dst []float32, row []byte) {
	row = row[:2*len(dst)]
	const block = 32 // elements an iteration of the assembly takes
	n := len(dst) / block
	if n > 0 {
		c.widen(&dst[0], &row[0], n)
	}
	if n *= block; n < len(dst) {
		portableWiden(dst[n:], row[2*n:])
	}
}
