package gguf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/testenv"
)

// forged is a file that says what it likes.
type forged struct{ bytes.Buffer }

func (f *forged) u32(n uint32) *forged { f.Write(binary.LittleEndian.AppendUint32(nil, n)); return f }
func (f *forged) u64(n uint64) *forged { f.Write(binary.LittleEndian.AppendUint64(nil, n)); return f }
func (f *forged) text(s string) *forged {
	f.u64(uint64(len(s))).WriteString(s)
	return f
}

// forge begins a file with a version and counts.
func forge(version uint32, tensors, keys uint64) *forged {
	f := &forged{}
	f.WriteString("GGUF")
	return f.u32(version).u64(tensors).u64(keys)
}

// tensor adds a description, axes fastest first as in files.
func (f *forged) tensor(name string, kind uint32, offset uint64, axes ...uint64) *forged {
	f.text(name).u32(uint32(len(axes)))
	for _, n := range axes {
		f.u64(n)
	}
	return f.u32(kind).u64(offset)
}

// data ends the header, with n bytes behind it.
func (f *forged) data(n int) []byte {
	return append(f.Bytes(), make([]byte, -f.Len()&31+n)...)
}

const huge = math.MaxUint64

// Each lie is an error that says what is wrong; without the lie the file is read.
func TestLies(t *testing.T) {
	if _, err := Parse("file", forge(3, 2, 1).text("k").u32(4).u32(7).tensor("a", 0, 0, 8).tensor("b", 8, 32, 32, 2).data(100)); err != nil {
		t.Fatal(err)
	}
	one := func() *forged { return forge(3, 1, 0) }
	key := func(kind uint32) *forged { return forge(3, 0, 1).text("k").u32(kind) }
	deep := key(9)
	for range deepest + 1 {
		deep.u32(9).u64(1)
	}
	for name, c := range map[string]struct {
		data []byte
		want string
		kind error
	}{
		"not a GGUF file":        {[]byte("PK\x03\x04 and so on and so on"), "PK", ErrNotGGUF},
		"nothing":                {nil, "begins with", ErrNotGGUF},
		"magic only":             {[]byte("GGUF"), "4 bytes are claimed", ErrTruncated},
		"magic reversed":         {[]byte("FUGG\x00\x00\x00\x03"), "big-endian", ErrBigEndian},
		"version 1":              {forge(1, 0, 0).Bytes(), "version 1", ErrVersion},
		"version 4":              {forge(4, 0, 0).Bytes(), "version 4", ErrVersion},
		"version reversed":       {forge(3<<24, 0, 0).Bytes(), "big-endian", ErrBigEndian},
		"keys":                   {forge(3, 0, 1000).data(64), "1000 keys", ErrTruncated},
		"tensors":                {forge(3, 1000, 0).data(64), "1000 tensors", ErrTruncated},
		"very many keys":         {forge(3, 0, huge).data(64), "at most 65536", nil},
		"very many tensors":      {forge(3, huge, 0).data(64), "at most 1048576", nil},
		"one more tensor":        {forge(3, 2, 0).tensor("a", 0, 0, 8).data(16), "name of 0 bytes", nil},
		"key's length":           {forge(3, 0, 1).u64(huge).data(64), "key of", nil},
		"key without a name":     {forge(3, 0, 1).text("").u32(0).data(64), "key of 0", nil},
		"key twice":              {forge(3, 0, 2).text("k").u32(4).u32(1).text("k").u32(4).u32(2).data(64), `"k": the key is there twice`, nil},
		"type of value":          {key(13).data(64), "unknown type 13", nil},
		"text's length":          {key(8).u64(huge).data(64), "18446744073709551615 bytes", ErrTruncated},
		"truth":                  {append(key(7).Bytes(), 2), "truth value is 2", nil},
		"truth in an array":      {append(key(9).u32(7).u64(2).Bytes(), 1, 9), "truth value is 9", nil},
		"a byte too few":         {append(key(8).u64(3).Bytes(), "ab"...), "3 bytes are claimed", ErrTruncated},
		"array's type":           {key(9).u32(99).u64(0).data(64), "array is of the unknown type 99", nil},
		"array of numbers":       {key(9).u32(10).u64(1 << 61).data(64), "numbers are claimed", ErrTruncated},
		"array of bytes":         {key(9).u32(0).u64(huge).data(64), "numbers are claimed", ErrTruncated},
		"array of texts":         {key(9).u32(8).u64(huge).data(64), "strings are claimed", ErrTruncated},
		"a text of an array":     {key(9).u32(8).u64(1).u64(1 << 63).data(64), "9223372036854775808 bytes", ErrTruncated},
		"array of arrays":        {key(9).u32(9).u64(huge).data(64), "arrays are claimed", ErrTruncated},
		"arrays without end":     {deep.data(64), "deep", nil},
		"alignment 0":            {forge(3, 0, 1).text("general.alignment").u32(4).u32(0).data(64), "power of two", nil},
		"alignment 48":           {forge(3, 0, 1).text("general.alignment").u32(4).u32(48).data(64), "power of two", nil},
		"alignment huge":         {forge(3, 0, 1).text("general.alignment").u32(10).u64(1 << 63).data(64), "power of two", nil},
		"alignment as text":      {forge(3, 0, 1).text("general.alignment").u32(8).text("32").data(64), "power of two", nil},
		"tensor's name":          {one().u64(1 << 40).data(64), "tensor's name of", nil},
		"axes":                   {one().text("a").u32(5).data(99), "5 axes", nil},
		"axes without end":       {one().text("a").u32(math.MaxUint32).data(99), "4294967295 axes", nil},
		"empty axis":             {one().tensor("a", 0, 0, 0).data(64), "empty axis", nil},
		"elements":               {one().tensor("a", 0, 0, 1<<32, 1<<32, 1<<32).data(64), "more elements", ErrTruncated},
		"elements around":        {one().tensor("a", 0, 0, 1<<33, 1<<31).data(64), "more elements", ErrTruncated},
		"type of tensor":         {one().tensor("a", 4711, 0, 8).data(64), "type 4711 is unknown", ErrType},
		"type given up":          {one().tensor("a", 31, 0, 32).data(64), "given up", ErrType},
		"type of ik_llama.cpp":   {one().tensor("a", 139, 0, 256).data(999), "type 139 is IQ4_K of ik_llama.cpp", ErrType},
		"half a block":           {one().tensor("a", 12, 0, 128, 2).data(999), "rows of 128", nil},
		"a number in blocks":     {one().tensor("a", 2, 0).data(999), "rows of 1 elements", nil},
		"behind the end":         {one().tensor("a", 0, 0, 8).data(31), "ends at byte", ErrTruncated},
		"offset behind the end":  {one().tensor("a", 0, 64, 8).data(64), "ends at byte", ErrTruncated},
		"offset around":          {one().tensor("a", 0, huge-31, 8).data(64), "at byte 18446744073709551584", ErrTruncated},
		"offset not aligned":     {one().tensor("a", 0, 16, 8).data(64), "not a multiple of 32", nil},
		"tensor twice":           {forge(3, 2, 0).tensor("a", 0, 0, 8).tensor("a", 0, 32, 8).data(64), "twice", nil},
		"tensors over another":   {forge(3, 2, 0).tensor("b", 0, 32, 8).tensor("a", 0, 0, 16).data(64), `"b": its data begins at byte`, nil},
		"tensors on one another": {forge(3, 2, 0).tensor("a", 0, 0, 8).tensor("b", 0, 0, 8).data(64), "inside that of", nil},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("file", c.data)
			var format *FormatError
			if !errors.As(err, &format) || format.Err != c.kind || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want one with %q of kind %v", err, c.want, c.kind)
			}
		})
	}
}

// use looks at everything that a header gives.
func use(h *Header, size int) error {
	for _, key := range h.Metadata.Keys() {
		v, ok := h.Metadata.Get(key)
		if !ok {
			return fmt.Errorf("key %q has no value", key)
		}
		plain(v)
	}
	for i := range h.Tensors {
		t := &h.Tensors[i]
		if t.Elements()/t.Type.BlockLen*t.Type.BlockBytes != len(t.Data) || t.OffsetBytes%int64(h.Alignment) != 0 || t.OffsetBytes+int64(len(t.Data)) > int64(size) {
			return fmt.Errorf("tensor %q of %d bytes at byte %d", t.Name, len(t.Data), t.OffsetBytes)
		}
		if err := t.Floats(make([]float32, t.Type.BlockLen), t.Elements()-t.Type.BlockLen); (err != nil) != (t.Type.Format == nil) {
			return fmt.Errorf("last block of %s: %v", t.Type, err)
		}
	}
	return nil
}

// mutate returns a file with a few faults, most of them where its header is.
func mutate(r *rand.Rand, src []byte, header int) []byte {
	extreme := []uint64{0, 1, 2, 12, 1 << 16, 1 << 31, math.MaxUint32, 1 << 32, 1 << 56, math.MaxInt64, 1 << 63, math.MaxUint64}
	out := bytes.Clone(src)
	for range 1 + r.IntN(3) {
		at := r.IntN(min(header, len(out)-8))
		switch r.IntN(6) {
		case 0:
			out[at] = byte(r.Uint32())
		case 1:
			out[at] ^= 1 << r.IntN(8)
		case 2:
			binary.LittleEndian.PutUint32(out[at:], uint32(extreme[r.IntN(len(extreme))]))
		case 3:
			binary.LittleEndian.PutUint64(out[at:], extreme[r.IntN(len(extreme))])
		case 4:
			n := min(r.IntN(24), len(out)-at)
			out = append(out[:at], out[at+n:]...)
		case 5:
			n := min(r.IntN(24), len(out)-at)
			out = append(out[:at+n], out[at:]...)
		}
		if len(out) < 16 {
			break
		}
	}
	if r.IntN(4) == 0 {
		out = out[:r.IntN(len(out))]
	}
	return out
}

// Files with faults are read or refused, and cost no more than a few times what they hold.
func TestMutations(t *testing.T) {
	const batch = 100
	var sources [][]byte
	var headers []int
	for _, name := range []string{"types.gguf", "moe-v2.gguf", "moe-00001-of-00003.gguf", "moe-00002-of-00003.gguf"} {
		raw := read(t, name)
		h, err := Parse(name, raw)
		if err != nil {
			t.Fatal(err)
		}
		end := len(raw)
		for i := range h.Tensors {
			end = min(end, int(h.Tensors[i].OffsetBytes))
		}
		sources, headers = append(sources, raw), append(headers, end)
	}
	rounds, refused := testenv.Rounds(2_000, 10_000, 100_000), 0
	for first := 0; first < rounds; first += batch {
		var files [batch][]byte
		size := 0
		for i := range files {
			r := rand.New(rand.NewPCG(18, uint64(first+i)))
			k := r.IntN(len(sources))
			files[i] = mutate(r, sources[k], headers[k])
			size += len(files[i])
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		var read [batch]*Header
		var errs [batch]error
		for i, raw := range files {
			read[i], errs[i] = Parse("file", raw)
		}
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > uint64(size) {
			t.Errorf("cases %d to %d: %d bytes allocated for files of %d", first, first+batch, got, size)
		}
		for i, err := range errs {
			var format *FormatError
			switch {
			case err == nil:
				err = use(read[i], len(files[i]))
			case errors.As(err, &format) && format.Path == "file" && format.Why != "":
				refused++
				err = nil
			}
			if err != nil {
				t.Errorf("case %d: %v", first+i, err)
			}
		}
	}
	if refused < rounds/2 || refused == rounds {
		t.Errorf("%d of %d refused: the faults are no faults, or there is nothing else", refused, rounds)
	}
}

// A file of any bytes is read or refused.
func FuzzParse(f *testing.F) {
	paths, err := filepath.Glob("testdata/*.gguf")
	if err != nil || len(paths) < 6 {
		f.Fatal(paths, err)
	}
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw[:min(len(raw), 4096)])
	}
	f.Add(forge(3, 1, 1).text("k").u32(9).u32(8).u64(1).text("x").tensor("a", 0, 0, 8).data(32))
	f.Fuzz(func(t *testing.T, raw []byte) {
		h, err := Parse("file", raw)
		if err != nil {
			var format *FormatError
			if !errors.As(err, &format) {
				t.Fatalf("not a *FormatError: %v", err)
			}
			return
		}
		if err := use(h, len(raw)); err != nil {
			t.Fatal(err)
		}
	})
}
