package host

import (
	"encoding/binary"
	"unsafe"

	"github.com/moeflux/moeflux-actor/model/quant"
)

// maxGroup is the largest quantisation group.
const maxGroup = 128

// portableTable returns the kernels for codes and blocks.
func portableTable() (t codingTable) {
	for c := range quant.Coding(quant.NumCodings) {
		if b := c.Block(); b != nil {
			t[c] = codingKernels{widen: b.Unpack, split: b.Split, whole: b.Whole}
		}
	}
	for _, c := range quant.Codings() {
		k := &t[c]
		k.dequantise = portableDequantise(c)
		for range maxTile {
			if c.Stepped() {
				k.int8s = append(k.int8s, func(a *byte) { portableInt8s((*panelArgs)(unsafe.Pointer(a)), c) })
			}
			k.floats = append(k.floats, func(a *byte) { portableFloats((*panelArgs)(unsafe.Pointer(a)), c) })
		}
	}
	return t
}

// goPanel is a panelArgs as slices.
type goPanel struct {
	codes, scales, biases []byte
	y                     [maxTile][]float32
}

func (a *panelArgs) panel(c quant.Coding) (p goPanel) {
	groups := a.cols / a.group
	p.codes = unsafe.Slice((*byte)(a.w), groups*a.groupBytes)
	p.scales = unsafe.Slice((*byte)(a.scales), groups*c.ScaleBytes()*panelRows)
	p.biases = unsafe.Slice((*byte)(a.biases), groups*c.BiasBytes()*panelRows)
	for r := range a.rows {
		p.y[r] = unsafe.Slice((*float32)(a.y[r]), panelRows)
		clear(p.y[r])
	}
	return p
}

// unpackLane writes a group's codes of one row to dst.
func unpackLane(dst []uint8, codes []byte, lane, bits int) {
	for at := 4 * lane; at < len(codes); at += 4 * panelRows {
		word := binary.LittleEndian.Uint32(codes[at:])
		switch bits {
		case 8:
			binary.LittleEndian.PutUint32(dst, word)
			dst = dst[4:]
		case 4:
			binary.LittleEndian.PutUint64(dst, uint64(word&0x0f0f0f0f)|uint64(word>>4&0x0f0f0f0f)<<32)
			dst = dst[8:]
		default:
			binary.LittleEndian.PutUint64(dst, uint64(word&0x03030303)|uint64(word>>2&0x03030303)<<32)
			binary.LittleEndian.PutUint64(dst[8:], uint64(word>>4&0x03030303)|uint64(word>>6&0x03030303)<<32)
			dst = dst[16:]
		}
	}
}

// portableFloats dequantises a group and adds its dot products to each row's total.
func portableFloats(a *panelArgs, c quant.Coding) {
	p, bits := a.panel(c), c.Bits()
	var codes [maxGroup]uint8
	var weights [maxGroup]float32
	// What codes of up to 4 bits stand for, and weights by code in a row and group.
	var meant, values [16]float32
	for q := 0; bits < 8 && q < 1<<bits; q++ {
		meant[q] = c.Value(q)
	}
	for g := range a.cols / a.group {
		group := p.codes[g*a.groupBytes : (g+1)*a.groupBytes]
		for lane := range panelRows {
			scale, bias := c.Scale(p.scales, g*panelRows+lane), c.Bias(p.biases, g*panelRows+lane)
			unpackLane(codes[:a.group], group, lane, bits)
			row := weights[:a.group]
			if bits == 8 {
				for i, q := range codes[:a.group] {
					row[i] = float32(c.Value(int(q))*scale) + bias
				}
			} else {
				for q := range values[:1<<bits] {
					values[q] = float32(meant[q]*scale) + bias
				}
				for i, q := range codes[:a.group] {
					row[i] = values[q&15]
				}
			}
			for r := range a.rows {
				x := unsafe.Slice((*float32)(a.x[r]), a.cols)
				p.y[r][lane] += dot(row, x[g*a.group:])
			}
		}
	}
}

// portableInt8s adds each group's dot·(scale·s) + bias·S, each step rounded. Where codes do not
// stand for themselves, dot is of whole steps, and scale and bias are those of steps.
func portableInt8s(a *panelArgs, c quant.Coding) {
	p, bits := a.panel(c), c.Bits()
	var codes [maxGroup]uint8
	groups := a.cols / a.group
	for g := range groups {
		group := p.codes[g*a.groupBytes : (g+1)*a.groupBytes]
		for lane := range panelRows {
			scale, bias := c.Scale(p.scales, g*panelRows+lane), c.Bias(p.biases, g*panelRows+lane)
			unpackLane(codes[:a.group], group, lane, bits)
			if !c.Itself() {
				step, least := c.Steps()
				scale, bias = step*scale, least*scale
				for i, q := range codes[:a.group] {
					codes[i] = uint8(c.Whole(int(q)))
				}
			}
			for r := range a.rows {
				x := unsafe.Slice((*int8)(a.x[r]), a.cols)[g*a.group : (g+1)*a.group]
				scales := unsafe.Slice((*float32)(unsafe.Add(a.x[r], a.cols)), 2*groups)
				product := float32(float32(dotInt8s(codes[:a.group], x)) * float32(scale*scales[2*g]))
				p.y[r][lane] += float32(product + float32(bias*scales[2*g+1]))
			}
		}
	}
}

// dotInt8s returns Σ q[i]·x[i]. Both have the same length, a multiple of 4.
func dotInt8s(q []uint8, x []int8) int32 {
	var a, b, c, d int32
	for len(q) >= 4 && len(x) >= 4 {
		a += int32(q[0]) * int32(x[0])
		b += int32(q[1]) * int32(x[1])
		c += int32(q[2]) * int32(x[2])
		d += int32(q[3]) * int32(x[3])
		q, x = q[4:], x[4:]
	}
	return a + b + c + d
}

// swap exchanges bits within a word: those of mask with those shift above.
type swap struct {
	shift int
	mask  uint32
}

// swaps bring the codes of a word into a panel's order, by their bits.
var swaps = [...][]swap{2: {{6, 0x00cc00cc}, {12, 0x0000f0f0}}, 4: {{8, 0x0000ff00}, {4, 0x00f000f0}}, 8: nil}

// arrangePanel writes panel p of a matrix that is stored in rows. All rows of the panel exist.
func (k *kernels) arrangePanel(codes, scales, biases []byte, w *matrix, p int) {
	first, bits := p*panelRows, w.format.Bits()
	arrange := k.codings[w.format.Coding()].arrange
	const block = 16 // bytes of a row
	words, done := w.rowBytes/4, 0
	row := w.weight[first*w.rowBytes : (first+panelRows)*w.rowBytes]
	if arrange != nil && w.rowBytes >= block {
		arrange(&codes[0], &row[0], w.rowBytes, w.rowBytes/block)
		done = w.rowBytes / block * 4
	}
	for i := done; i < words; i++ {
		for lane := range panelRows {
			word := binary.LittleEndian.Uint32(row[lane*w.rowBytes+4*i:])
			for _, s := range swaps[bits] {
				t := (word ^ word>>s.shift) & s.mask
				word ^= t ^ t<<s.shift
			}
			binary.LittleEndian.PutUint32(codes[4*(i*panelRows+lane):], word)
		}
	}
	for _, part := range []struct {
		p        quant.Part
		dst, src []byte
	}{{quant.Scales, scales, w.scales}, {quant.Biases, biases, w.biases}} {
		n, groups := w.format.PartBytes(part.p, 1, w.cols), w.cols/w.format.Group()
		if part.p == quant.Biases && w.format.Coding().Factor() {
			groups = 1
		}
		if n > 0 {
			k.arrangeNumbers(part.dst, part.src[first*n:(first+panelRows)*n], groups)
		}
	}
}

// arrangeNumbers writes a panel's scales or biases, groups of each row.
func (k *kernels) arrangeNumbers(dst, src []byte, groups int) {
	const block = 8 // groups
	width := len(src) / panelRows
	size, done := width/groups, 0
	if k.arrangeScales != nil && size == 2 && groups >= block {
		k.arrangeScales(&dst[0], &src[0], width, groups/block)
		done = groups / block * block
	}
	for g := done; g < groups; g++ {
		for lane := range panelRows {
			to, from := dst[size*(g*panelRows+lane):], src[lane*width+size*g:]
			switch size {
			case 4:
				copy(to[:4], from[:4])
			case 2:
				to[0], to[1] = from[0], from[1]
			default:
				to[0] = from[0]
			}
		}
	}
}
