package model

import "github.com/moeflux/moeflux-actor/model/quant"

// ExpertPart is one of an expert's three matrices inside its record. Offsets are bytes from the
// start of the record; those of scales and biases count only if the format has them.
type ExpertPart struct {
	Rows, Cols   int
	Format       quant.Format
	WeightOffset int
	ScalesOffset int
	BiasesOffset int
}

// Offset returns where a part of the matrix lies in the record.
func (p *ExpertPart) Offset(part quant.Part) int {
	return [quant.NumParts]int{p.WeightOffset, p.ScalesOffset, p.BiasesOffset}[part]
}

// ExpertLayout is the layout of one routed expert's record: gate, up and down projection one after
// the other, each as weight, scales, biases. There is no padding but where numbers of several bytes
// would not begin at a multiple of them. Gate and Up are [intermediate, hidden], Down is [hidden,
// intermediate]. Layers may have matrices of other formats, but every record of a model has the
// same number of bytes: what smaller matrices leave over lies at the end.
type ExpertLayout struct {
	Gate, Up, Down ExpertPart
	Bytes          int // of one record
}

// Used returns the bytes of the record up to the end of its last matrix.
func (l *ExpertLayout) Used() int {
	return l.Down.WeightOffset + l.Down.Format.Bytes(l.Down.Rows, l.Down.Cols)
}

// NewExpertLayout derives the layout from the sizes and the format of each projection.
func NewExpertLayout(hidden, intermediate int, gate, up, down quant.Format) ExpertLayout {
	var l ExpertLayout
	place := func(rows, cols int, f quant.Format) ExpertPart {
		word := f.WordBytes()
		l.Bytes = (l.Bytes + word - 1) / word * word
		p := ExpertPart{Rows: rows, Cols: cols, Format: f, WeightOffset: l.Bytes}
		p.ScalesOffset = p.WeightOffset + f.WeightBytes(rows, cols)
		p.BiasesOffset = p.ScalesOffset + f.ScaleBytes(rows, cols)
		l.Bytes += f.Bytes(rows, cols)
		return p
	}
	l.Gate = place(intermediate, hidden, gate)
	l.Up = place(intermediate, hidden, up)
	l.Down = place(hidden, intermediate, down)
	return l
}
