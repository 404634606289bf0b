package dispatch

import (
	"testing"

	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/stages"
)

// TestExpands knows which form takes fewer multiplications with DeepSeek-V3's sizes: for long
// contexts the border lies at 171 rows (architectures.md, 5.1), at the beginning of a text
// expanding wins sooner.
func TestExpands(t *testing.T) {
	v3 := &model.Config{NumAttentionHeads: 128, KVLoraRank: 512, QKNopeHeadDim: 128, QKRopeHeadDim: 64, VHeadDim: 128}
	for _, tc := range []struct {
		pos, rows, chunk int
		want             bool
	}{
		{0, 1, 512, false}, {100_000, 1, 512, false}, {0, 2, 512, true}, {0, 512, 512, true},
		{100_000, 170, 512, false}, {100_000, 172, 512, true}, {100_000, 512, 128, false}, {0, 100_000, 170, false}, {0, 100_000, 172, true},
	} {
		g := stages.Segment{Rows: 1, Pos: tc.pos, ChunkPos: tc.pos, ChunkRows: tc.rows}
		if got := expands(v3, &g, tc.chunk); got != tc.want {
			t.Errorf("a chunk of %d at %d in steps of %d: expanded %v, want %v", tc.rows, tc.pos, tc.chunk, got, tc.want)
		}
	}
}
