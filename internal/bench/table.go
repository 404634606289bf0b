package bench

import (
	"fmt"
	"strings"
)

// column is a column of a table with rows of one kind.
type column[R any] struct {
	head  string
	width int // negative: aligned to the left
	cell  func(R) string
}

// table appends the heads of the columns and the rows.
func table[R any](b *strings.Builder, columns []column[R], rows []R) {
	for _, c := range columns {
		fmt.Fprintf(b, "%*s", c.width, c.head)
	}
	b.WriteByte('\n')
	for _, row := range rows {
		for _, c := range columns {
			fmt.Fprintf(b, "%*s", c.width, c.cell(row))
		}
		b.WriteByte('\n')
	}
}

// percent writes a share.
func percent(share float64) string { return fmt.Sprintf("%.1f%%", 100*share) }

// milliseconds writes a time.
func milliseconds(ms float64) string { return fmt.Sprintf("%.2f ms", ms) }

// hundredths writes a number with two digits after the point.
func hundredths(x float64) string { return fmt.Sprintf("%.2f", x) }
