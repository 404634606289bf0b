package quant

import (
	"fmt"
	"strings"
)

// Layout is the order in which a matrix's codes, scales and biases are stored.
type Layout uint8

// The layouts. Both take the same number of bytes.
const (
	Rows       Layout = iota // row after row, as in checkpoints
	Panels                   // PanelRows rows together, see ToPanels
	NumLayouts = iota
)

// layoutNames are the names of the layouts in files and flags.
var layoutNames = [NumLayouts]string{Rows: "rows", Panels: "panels"}

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
