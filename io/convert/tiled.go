package convert

import (
	"strings"

	"github.com/moeflux/moeflux-actor/io/ggufmodel"
	"github.com/moeflux/moeflux-actor/model"
)

// untile takes what belongs to value heads of linear attention in the order of the checkpoint from
// a source where these heads are tiled: rows of projections, channels of the convolution, and
// columns of the output projection.
func untile(c *model.Config, specs []spec) {
	order := ggufmodel.TileOrder(c.LinearNumKeyHeads, c.LinearNumValueHeads)
	wide := headRows(order, 2*c.LinearKeyDim(), c.LinearValueHeadDim) // after queries and keys
	for i := range specs {
		s := &specs[i]
		var take []rowRange
		switch _, name, _ := strings.Cut(s.name, "linear_attn."); name {
		case "in_proj_qkv", "conv1d.weight":
			take = wide
		case "in_proj_z":
			take = headRows(order, 0, c.LinearValueHeadDim)
		case "in_proj_a", "in_proj_b", "A_log", "dt_bias":
			take = headRows(order, 0, 1)
		case "out_proj":
			s.pieces = &pieces{width: c.LinearValueHeadDim, from: order}
		}
		if take != nil {
			s.from = &part{name: s.name, rows: s.rows, take: take}
		}
	}
}

// headRows returns rows in the order of heads, after first rows that stay.
func headRows(order []int, first, each int) []rowRange {
	out := make([]rowRange, 0, 1+len(order))
	if first > 0 {
		out = append(out, rowRange{n: first})
	}
	for _, place := range order {
		out = append(out, rowRange{first: first + place*each, n: each})
	}
	return out
}
