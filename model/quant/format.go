package quant

import "fmt"

// Format says how a matrix's numbers are stored: as one of the formats that there are, in a layout.
// It is a value that can be compared; all that files, checks and kernels want to know of it are its
// methods. The zero Format is F32.
type Format struct {
	id     uint8 // index in kinds
	Layout Layout
}

// kind is a Format but for the layout.
type kind struct {
	name   string
	coding Coding
	group  int // inputs that share a scale; 0 where numbers stand for themselves
}

// kinds lists all that there are, F32 first. It follows from codings.
var kinds = makeKinds()

func makeKinds() (all []kind) {
	for c := range Coding(NumCodings) {
		d := &codings[c]
		switch len(d.groups) {
		case 0:
			all = append(all, kind{name: d.name, coding: c})
		case 1:
			all = append(all, kind{d.name, c, d.groups[0]})
		default:
			for _, group := range d.groups {
				all = append(all, kind{fmt.Sprintf("%sg%d", d.name, group), c, group})
			}
		}
	}
	return all
}

// The formats without parameters.
var (
	F32  = formatOf("f32", 0)  // IEEE float32
	BF16 = formatOf("bf16", 0) // the upper 16 bits of a float32
	// 4-bit floats in groups of 32 that share a power of two
	MXFP4 = formatOf("mxfp4", 32)
	// 4-bit floats in groups of 16 that share an 8-bit float, and a factor of each row
	NVFP4 = formatOf("nvfp4", 16)
)

// Affine returns the format of whole numbers of 2, 4 or 8 bits in groups of 32, 64 or 128 inputs.
// It panics for others: see AffineFormat.
func Affine(bits, group int) Format {
	f, err := AffineFormat(bits, group)
	if err != nil {
		panic(err)
	}
	return f
}

// AffineFormat is Affine for numbers from outside. The error says which there are.
func AffineFormat(bits, group int) (Format, error) {
	known := false
	for i, k := range kinds {
		if f := (Format{id: uint8(i)}); !f.Affine() || f.Bits() != bits {
			continue
		}
		if known = true; k.group == group {
			return Format{id: uint8(i)}, nil
		}
	}
	if !known {
		return Format{}, fmt.Errorf("quant: %d bits: codes must have 2, 4 or 8", bits)
	}
	return Format{}, fmt.Errorf("quant: groups of %d inputs: they must have 32, 64 or 128", group)
}

// AffineF32 is AffineFormat for codes of 4 or 8 bits whose scales and biases are float32.
func AffineF32(bits, group int) (Format, error) {
	if bits != 4 && bits != 8 {
		return Format{}, fmt.Errorf("quant: %d bits: codes with float32 scales must have 4 or 8", bits)
	}
	return find(fmt.Sprintf("q%df", bits), group)
}

// FP8 returns the format of 8-bit floats, e4m3, in groups of 32 or 128 inputs.
func FP8(group int) (Format, error) { return find("fp8", group) }

func find(coding string, group int) (Format, error) {
	for i, k := range kinds {
		if codings[k.coding].name == coding && k.group == group {
			return Format{id: uint8(i)}, nil
		}
	}
	return Format{}, fmt.Errorf("quant: no format of %s in groups of %d inputs", coding, group)
}

func formatOf(coding string, group int) Format {
	f, err := find(coding, group)
	if err != nil {
		panic(err)
	}
	return f
}

// Formats returns all formats, in layout Rows.
func Formats() (all []Format) {
	for i := range kinds {
		all = append(all, Format{id: uint8(i)})
	}
	return all
}

func (f Format) kind() *kind { return &kinds[f.id] }

// String returns a short name: "f32", "bf16", "q4g64", "q4g64p" for panels.
func (f Format) String() string {
	if f.Layout == Panels {
		return f.kind().name + "p"
	}
	return f.kind().name
}

// Coding returns how words hold numbers.
func (f Format) Coding() Coding { return f.kind().coding }

// Codes reports whether numbers are codes in groups; otherwise they stand for themselves.
func (f Format) Codes() bool { return f.kind().group != 0 }

// Affine reports whether codes are whole numbers that a scale and a bias of bf16 are applied to, as
// Quantize makes them.
func (f Format) Affine() bool {
	d := &codings[f.Coding()]
	return d.biased && d.scale == &scaleBF16
}

// Rounds reports whether devices may multiply the matrix by inputs that are rounded to 8 bits:
// codes stand for whole numbers of steps, so that products are of integers.
func (f Format) Rounds() bool { return f.Codes() && f.Coding().Stepped() }

// Bits returns the bits of a number or code, 0 in blocks of several numbers.
func (f Format) Bits() int { return f.Coding().Bits() }

// Block returns the blocks that numbers are in, nil for other formats.
func (f Format) Block() *Block { return f.Coding().Block() }

// InBlock returns the format of matrices whose rows are blocks of b.
func InBlock(b *Block) Format {
	for i, k := range kinds {
		if codings[k.coding].dtype == b.Name {
			return Format{id: uint8(i)}
		}
	}
	panic("quant: no format has blocks of " + b.Name)
}

// Rounded returns how many inputs share a scale when they are rounded to 8 bits to be multiplied by
// a matrix of this format, 0 if they are not rounded.
func (f Format) Rounded() int {
	switch b := f.Block(); {
	case b != nil && b.Len > 1:
		return b.Len
	case f.Rounds():
		return f.Group()
	}
	return 0
}

// Group returns how many inputs share a scale, 0 where numbers stand for themselves.
func (f Format) Group() int { return f.kind().group }

// WordBytes returns the bytes of a number, or of the words that hold codes: a matrix begins at a
// multiple of them.
func (f Format) WordBytes() int { return codings[f.Coding()].word }

// Validate reports a format that does not divide cols inputs.
func (f Format) Validate(cols int) error {
	switch {
	case cols <= 0:
		return fmt.Errorf("quant: %d columns", cols)
	case f.Layout >= NumLayouts:
		return fmt.Errorf("quant: unknown layout %d", f.Layout)
	case f.Codes() && cols%f.Group() != 0:
		return fmt.Errorf("quant: %d columns do not divide into groups of %d", cols, f.Group())
	case f.Block() != nil:
		return f.Block().Validate(cols)
	}
	return nil
}

// HoldsRows reports whether a matrix with this many rows can have the format. Panels are of codes,
// and must be whole.
func (f Format) HoldsRows(rows int) bool {
	return f.Layout == Rows || f.Codes() && rows%PanelRows == 0
}

// In returns the format in layout l, or in Rows if a matrix with this many rows cannot have it so.
func (f Format) In(l Layout, rows int) Format {
	f.Layout = l
	if !f.HoldsRows(rows) {
		f.Layout = Rows
	}
	return f
}

// WeightBytes returns the bytes of the numbers or codes of a [rows, cols] matrix.
func (f Format) WeightBytes(rows, cols int) int {
	if b := f.Block(); b != nil {
		return b.Bytes(rows, cols)
	}
	return rows * cols * f.Bits() / 8
}

// ScaleBytes returns the bytes of the scales of a [rows, cols] matrix, 0 if there are none.
func (f Format) ScaleBytes(rows, cols int) int {
	return f.groups(rows, cols) * f.Coding().ScaleBytes()
}

// BiasBytes returns the bytes of the biases of a [rows, cols] matrix, or of its rows' factors,
// which lie in their place; 0 if there are neither.
func (f Format) BiasBytes(rows, cols int) int {
	if f.Coding().Factor() {
		return 4 * rows
	}
	return f.groups(rows, cols) * f.Coding().BiasBytes()
}

// groups returns how many groups a matrix has.
func (f Format) groups(rows, cols int) int {
	if !f.Codes() {
		return 0
	}
	return rows * (cols / f.Group())
}

// Bytes returns the bytes of a [rows, cols] matrix: codes, scales and biases.
func (f Format) Bytes(rows, cols int) int {
	return f.WeightBytes(rows, cols) + f.ScaleBytes(rows, cols) + f.BiasBytes(rows, cols)
}
