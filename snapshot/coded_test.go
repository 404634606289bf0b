package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
)

// rowsOf is a state as bytes: the rows of each part of each layer.
type rowsOf map[string][]byte

func randomRows(s *Shape, positions int) rowsOf {
	rng, all := rand.New(rand.NewPCG(1, 8)), make(rowsOf)
	for layer := range s.Layers {
		for _, b := range s.blocks(layer, positions) {
			if b.rows == 0 {
				continue
			}
			rows := make([]byte, b.bytes())
			for i := range rows {
				rows[i] = byte(rng.Uint32())
			}
			all[fmt.Sprint(layer, b.part)] = rows
		}
	}
	return all
}

func (r rowsOf) ReadRows(layer int, p Part, first int, dst []byte) error {
	rows := r[fmt.Sprint(layer, p)]
	copy(dst, rows[first*rowOf[p]:])
	return nil
}

func (r rowsOf) WriteRows(layer int, p Part, first int, src []byte) error {
	name := fmt.Sprint(layer, p)
	if len(r[name]) != first*rowOf[p] {
		return fmt.Errorf("row %d of %s after %d bytes", first, name, len(r[name]))
	}
	r[name] = append(r[name], src...)
	return nil
}

// rowOf is the bytes of a row of codedShape: a code for each channel and four bytes for each group.
var rowOf = map[Part]int{Keys: 12 + 3*4, Values: 12 + 3*4, Latents: 8 + 2*4, RotatedKeys: 4 + 4, Convolution: 20, Recurrence: 24, IndexKeys: 12 + 2*4}

var codedShape = &Shape{
	Layers: shapes["mixed"].Layers, KVHeads: 3, HeadDim: 4, KVLoraRank: 8, RopeDim: 4, KVGroup: 4, LatentGroup: 4,
}

// TestCodes writes and reads states whose keys and values are codes and scales. Nobody takes such a
// file for another, nor another for such a one.
func TestCodes(t *testing.T) {
	indexed := *codedShape
	indexed.Indexers, indexed.IndexDim, indexed.IndexGroup = []bool{true, false}, 12, 6
	testCodes(t, codedShape, 0)
	testCodes(t, &indexed, rowOf[IndexKeys])
}

// testCodes does so for a shape whose rows have more bytes beside those of codedShape.
func testCodes(t *testing.T, codedShape *Shape, more int) {
	const positions = 70
	want := randomRows(codedShape, positions)
	var b bytes.Buffer
	o := WriteOptions{Positions: positions, Seal: new(Seal)}
	size, err := Size(codedShape, o)
	if err != nil {
		t.Fatal(err)
	}
	n, err := Write(&b, codedShape, want, o)
	if least := int64(positions * (2*rowOf[Keys] + rowOf[Latents] + rowOf[RotatedKeys] + more)); err != nil || n != size || n < least || n > least+200 {
		t.Fatalf("wrote %d bytes, want %d, %d and a little more; %v", n, size, least, err)
	}
	raw := bytes.NewReader(b.Bytes())
	f, err := Open(raw, n, codedShape, ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got := make(rowsOf)
	if err := f.Fill(got); err != nil {
		t.Fatal(err)
	}
	for name, rows := range want {
		if !bytes.Equal(got[name], rows) {
			t.Errorf("part %s of the layer has other bytes", name)
		}
	}
	floats := *codedShape
	floats.KVGroup, floats.LatentGroup, floats.IndexGroup = 0, 0, 0
	if _, err := Open(raw, n, &floats, ReadOptions{}); !errors.Is(err, ErrVersion) {
		t.Errorf("opened as floats: %v", err)
	}
	if _, err := Inspect(raw, n); !errors.Is(err, ErrVersion) {
		t.Errorf("shown: %v", err)
	}
	plain := mustWrite(t, newPaged(&floats, 4, positions), WriteOptions{Seal: new(Seal)})
	if _, err := Open(bytes.NewReader(plain), int64(len(plain)), codedShape, ReadOptions{}); !errors.Is(err, ErrVersion) {
		t.Errorf("floats opened as codes: %v", err)
	}
	for version, s := range map[int]*Shape{Version2: codedShape, codedShape.version(): &floats} {
		if _, err := Size(s, WriteOptions{Version: version}); !errors.Is(err, ErrVersion) {
			t.Errorf("version %d of %+v: %v", version, s, err)
		}
	}
	uneven := *codedShape
	uneven.LatentGroup = 3
	if err := uneven.Validate(); err == nil {
		t.Error("groups that do not fit are valid")
	}
}
