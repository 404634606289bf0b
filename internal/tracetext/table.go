package tracetext

import (
	"strings"
	"unicode/utf8"
)

// table is rows of cells. Cells are aligned to the right, but those of the columns that are named
// as left.
type table struct {
	head []string
	rows [][]string
	left map[int]bool
}

func newTable(left []int, head ...string) *table {
	t := &table{head: head, left: make(map[int]bool)}
	for _, c := range left {
		t.left[c] = true
	}
	return t
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// write writes the table with two spaces between columns, and leaves out columns from the right
// that do not fit into the width. A column whose cells are all "0" or empty is left out, too, but
// for the first, which names the rows.
func (t *table) write(b *strings.Builder, width int) {
	var columns, widths []int
	used := 0
	for c := range t.head {
		w, blank := utf8.RuneCountInString(t.head[c]), len(t.rows) > 0
		for _, r := range t.rows {
			w = max(w, utf8.RuneCountInString(r[c]))
			blank = blank && (r[c] == "0" || r[c] == "")
		}
		if blank && c > 0 {
			continue
		}
		if used += w + 2; used > width {
			break
		}
		columns, widths = append(columns, c), append(widths, w)
	}
	for _, r := range append([][]string{t.head}, t.rows...) {
		var line strings.Builder
		for i, c := range columns {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(r[c]))
			line.WriteString("  ")
			if t.left[c] {
				line.WriteString(r[c] + pad)
			} else {
				line.WriteString(pad + r[c])
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}
