package quant

import (
	"fmt"
	"strings"
)

// Kind says how the elements of a matrix are stored.
type Kind uint8

// The kinds of storage.
const (
	F32  Kind = iota // IEEE float32
	BF16             // the upper 16 bits of a float32
	// codes in groups along the input axis: w = q·scale + bias, both bf16
	Affine
)

// Layout is the order in which an affine matrix's codes, scales and biases are stored.
type Layout uint8

// The layouts. Both take the same number of bytes.
const (
	Rows   Layout = iota // row after row, as in MLX checkpoints
	Panels               // PanelRows rows together, see ToPanels
)

// layoutNames are the names of the layouts in files and flags.
var layoutNames = [...]string{Rows: "rows", Panels: "panels"}

// String returns the layout's name.
func (l Layout) String() string {
	if int(l) >= len(layoutNames) {
		return fmt.Sprintf("layout %d", l)
	}
	return layoutNames[l]
}

// MarshalText returns the layout's name.
func (l Layout) MarshalText() ([]byte, error) {
	if int(l) >= len(layoutNames) {
		return nil, fmt.Errorf("quant: unknown layout %d", l)
	}
	return []byte(l.String()), nil
}

// UnmarshalText reads a layout's name. The error lists the known names.
func (l *Layout) UnmarshalText(text []byte) error {
	for i, name := range layoutNames {
		if string(text) == name {
			*l = Layout(i)
			return nil
		}
	}
	return fmt.Errorf("quant: unknown layout %q: it must be %s", text, strings.Join(layoutNames[:], " or "))
}

// Format says how a matrix's elements are stored. Fields other than Kind apply only to Affine.
type Format struct {
	Kind   Kind
	Bits   int // 2, 4 or 8
	Group  int // inputs that share one scale and one bias: 32, 64 or 128
	Layout Layout
}

// String returns a short name: "f32", "bf16", "q4g64", "q4g64p" for panels.
func (f Format) String() string {
	switch f.Kind {
	case F32:
		return "f32"
	case BF16:
		return "bf16"
	default:
		name := fmt.Sprintf("q%dg%d", f.Bits, f.Group)
		if f.Layout == Panels {
			name += "p"
		}
		return name
	}
}

// Validate reports a format that no kernel supports, or that does not divide cols inputs.
func (f Format) Validate(cols int) error {
	switch {
	case cols <= 0:
		return fmt.Errorf("quant: %d columns", cols)
	case f.Kind == F32 || f.Kind == BF16:
		return nil
	case f.Kind != Affine:
		return fmt.Errorf("quant: unknown kind %d", f.Kind)
	case f.Bits != 2 && f.Bits != 4 && f.Bits != 8:
		return fmt.Errorf("quant: %d bits: codes must have 2, 4 or 8", f.Bits)
	case f.Group != 32 && f.Group != 64 && f.Group != 128:
		return fmt.Errorf("quant: groups of %d inputs: they must have 32, 64 or 128", f.Group)
	case f.Layout > Panels:
		return fmt.Errorf("quant: unknown layout %d", f.Layout)
	case cols%f.Group != 0:
		return fmt.Errorf("quant: %d columns do not divide into groups of %d", cols, f.Group)
	}
	return nil
}

// HoldsRows reports whether a matrix with this many rows can have the format. Panels must be whole.
func (f Format) HoldsRows(rows int) bool {
	return f.Kind != Affine || f.Layout == Rows || rows%PanelRows == 0
}

// In returns the format in layout l, or in Rows if a matrix with this many rows cannot have l or if
// its kind has no layouts.
func (f Format) In(l Layout, rows int) Format {
	f.Layout = Rows
	if f.Kind == Affine {
		f.Layout = l
	}
	if !f.HoldsRows(rows) {
		f.Layout = Rows
	}
	return f
}

// WeightBytes returns the bytes of the elements or codes of a [rows, cols] matrix.
func (f Format) WeightBytes(rows, cols int) int {
	switch f.Kind {
	case F32:
		return rows * cols * 4
	case BF16:
		return rows * cols * 2
	default:
		return rows * cols * f.Bits / 8
	}
}

// ScaleBytes returns the bytes of the scales, and equally of the biases, of a [rows, cols] matrix;
// 0 unless the format is Affine.
func (f Format) ScaleBytes(rows, cols int) int {
	if f.Kind != Affine {
		return 0
	}
	return rows * (cols / f.Group) * 2
}

// Bytes returns the bytes of a [rows, cols] matrix: codes, scales and biases.
func (f Format) Bytes(rows, cols int) int {
	return f.WeightBytes(rows, cols) + 2*f.ScaleBytes(rows, cols)
}

// FromShapes returns the affine format of a matrix with cols inputs, each row of which has words
// 32-bit words of codes and groups scales. It fails if no format has them.
func FromShapes(cols, words, groups int) (Format, error) {
	if cols <= 0 || words <= 0 || groups <= 0 || words > cols || cols%groups != 0 || words*32%cols != 0 {
		return Format{}, fmt.Errorf("quant: %d words of codes and %d groups for %d columns", words, groups, cols)
	}
	f := Format{Kind: Affine, Bits: words * 32 / cols, Group: cols / groups}
	if err := f.Validate(cols); err != nil {
		return Format{}, err
	}
	return f, nil
}
