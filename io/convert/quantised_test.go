package convert_test

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/io/convert"
	"github.com/moeflux/moeflux-actor/model"
)

// sumsOf reads what a checkpoint's matrices stand for.
func sumsOf(t testing.TB, dir string) map[string]string {
	t.Helper()
	sums := map[string]string{}
	if err := json.Unmarshal(readFile(t, filepath.Join(dir, "sums.json")), &sums); err != nil || len(sums) < 26 {
		t.Fatalf("%s: %d sums, %v", dir, len(sums), err)
	}
	return sums
}

var expertName = regexp.MustCompile(`^model\.layers\.(\d+)\.mlp\.experts\.(\d+)\.(gate|up|down)_proj$`)

// numbersOf returns what a matrix of a pack of such a checkpoint stands for, and its format.
func (p *pack) numbersOf(name string) (numbers []float32, format string) {
	p.t.Helper()
	c := p.cfg
	if m := expertName.FindStringSubmatch(name); m != nil {
		layer, _ := strconv.Atoi(m[1])
		e, _ := strconv.Atoi(m[2])
		l := rowsOf(p.x.LayoutOf(layer))
		part := map[string]model.ExpertPart{"gate": l.Gate, "up": l.Up, "down": l.Down}[m[3]]
		w, s, b := parts(p.record(layer, e), part)
		return unpack(part.Format, part.Rows, part.Cols, w, s, b), part.Format.String()
	}
	rows, cols := c.VocabSize, c.HiddenSize
	switch suffix := name[len(name)-6:]; suffix {
	case "q_proj":
		rows = c.NumAttentionHeads * c.HeadDim
	case "k_proj", "v_proj":
		rows = c.KVDim()
	case "o_proj":
		rows, cols = c.HiddenSize, c.NumAttentionHeads*c.HeadDim
	case "p.gate":
		rows = c.NumExperts
	}
	f, w, s, b := p.matrix(name, rows, cols)
	return unpack(f, rows, cols, w, s, b), f.String()
}

// Every number of every form is that which the form's rules say, in both layouts.
func TestConvertQuantised(t *testing.T) {
	for form, dir := range fixtures.Quantised(t) {
		if form != "mlx-mixed" { // layers in different formats are not written again
			t.Run(form+"/again", func(t *testing.T) {
				panels, rows := mustConvert(t, dir, convert.Options{}), mustConvert(t, dir, convert.Options{RowOrder: true})
				sameTree(t, mustConvert(t, panels, convert.Options{RowOrder: true}), rows)
				sameTree(t, mustConvert(t, rows, convert.Options{}), panels)
			})
		}
		for _, o := range []convert.Options{{}, {RowOrder: true}} {
			t.Run(fmt.Sprintf("%s/rows=%t", form, o.RowOrder), func(t *testing.T) {
				p := openPack(t, mustConvert(t, dir, o))
				formats := map[string]int{}
				for name, want := range sumsOf(t, dir) {
					numbers, format := p.numbersOf(name)
					formats[format]++
					var raw []byte
					for _, v := range numbers {
						raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
					}
					if got := sha256.Sum256(raw); hex.EncodeToString(got[:]) != want {
						t.Errorf("%s as %s: other numbers than the checkpoint's, the first %v", name, format, numbers[:4])
					}
				}
				t.Log(formats)
			})
		}
	}
}
