package snapshot

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/moeflux/moeflux-actor/model"
)

// put returns a copy of a file with one word changed.
func put(file []byte, at int, v uint32) []byte {
	out := slices.Clone(file)
	binary.LittleEndian.PutUint32(out[at:], v)
	return out
}

// TestRefusesPlain damages the hand-made files and the shape at every place that a reader checks.
func TestRefusesPlain(t *testing.T) {
	v1, s1, _ := version1()
	v2, s2, _ := version2()
	other := func(s *Shape, change func(*Shape)) *Shape {
		c := *s
		c.Layers = slices.Clone(s.Layers)
		change(&c)
		return &c
	}
	keys, latents := "keys and values", "latents and rotated keys"
	for _, c := range []struct {
		name  string
		file  []byte
		s     *Shape
		kind  error
		field string
		layer int
	}{
		{"empty", nil, s1, ErrTruncated, "header", -1},
		{"seven bytes", v1[:7], s1, ErrTruncated, "header", -1},
		{"magic", put(v1, 0, 0x4D464C59), s1, ErrNotSnapshot, "magic", -1},
		{"magic in the other order", append([]byte("MFLX"), v1[4:]...), s1, ErrNotSnapshot, "magic", -1},
		{"version 0", put(v1, 4, 0), s1, ErrVersion, "version", -1},
		{"version 3", put(v1, 4, 3), s1, ErrVersion, "version", -1},
		{"half a header", v1[:31], s1, ErrTruncated, "header", -1},
		{"header of version 1 said to be 2", put(v1, 4, 2)[:39], s1, ErrTruncated, "header", -1},
		{"version 1 of latent attention", put(v2, 4, 1), s2, ErrVersion, "version", -1},
		{"num_layers", put(v1, 8, 3), s1, ErrShape, "num_layers", -1},
		{"two fields: the first", put(put(v1, 28, 1), 8, 3), s1, ErrShape, "num_layers", -1},
		{"full_attn_interval", put(v1, 12, 1), s1, ErrShape, "full_attn_interval", -1},
		{"num_kv_heads", put(v1, 16, 1), s1, ErrShape, "num_kv_heads", -1},
		{"head_dim", put(v1, 20, 6), s1, ErrShape, "head_dim", -1},
		{"linear_conv_bytes", put(v1, 24, 64), s1, ErrShape, "linear_conv_bytes", -1},
		{"linear_ssm_bytes", put(v1, 28, 60), s1, ErrShape, "linear_ssm_bytes", -1},
		{"kv_lora_rank", put(v2, 32, 0), s2, ErrShape, "kv_lora_rank", -1},
		{"qk_rope_head_dim", put(v2, 36, 64), s2, ErrShape, "qk_rope_head_dim", -1},
		{"a model with another kernel", v1, other(s1, func(s *Shape) { s.ConvRows = 2 }), ErrShape, "linear_conv_bytes", -1},
		{"ends in the recurrence", v1[:155], s1, ErrTruncated, "convolution and recurrence", 0},
		{"ends before len", v1[:156], s1, ErrTruncated, "len", 1},
		{"ends in len", v1[:159], s1, ErrTruncated, "len", 1},
		{"len -1", put(v1, 156, ^uint32(0)), s1, ErrNegativeLen, "len", 1},
		{"len 2^20 + 1", put(v1, 156, maxLen+1), s1, ErrLenOverflow, "len", 1},
		{"len 2^20", put(v1, 156, maxLen), s1, ErrTruncated, keys, 1},
		{"len 3", put(v1, 156, 3), s1, ErrTruncated, keys, 1},
		{"ends in the values", v1[:255], s1, ErrTruncated, keys, 1},
		{"ends in the rotated keys", v2[:167], s2, ErrTruncated, latents, 1},
		{"layers at different positions", append(put(v2, 104, 2), 0)[:148], s2, ErrUnequalLen, "len", 1},
		{"a later layer at more positions", append(put(v2, 104, 4), make([]byte, 20)...), s2, ErrUnequalLen, "len", 1},
		{"len 1: bytes remain", put(v1, 156, 1), s1, ErrTrailing, "file", -1},
		{"a byte behind", append(slices.Clone(v1), 0), s1, ErrTrailing, "file", -1},
		{"zeros behind", append(slices.Clone(v1), make([]byte, 500)...), s1, ErrTrailing, "file", -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Open(bytes.NewReader(c.file), int64(len(c.file)), c.s, ReadOptions{Accept: Plain})
			wantError(t, err, c.kind, c.field, c.layer)
		})
	}
}

// TestAccept checks what each way to accept files takes.
func TestAccept(t *testing.T) {
	plain, s, st := version1()
	sealed := mustWrite(t, st, WriteOptions{Seal: &Seal{Fingerprint: Fingerprint{1, 2}, Tokens: tokens(2)}})
	cut := sealed[:len(sealed)-1]
	flipped := put(sealed, len(sealed)-20, 7)
	for _, c := range []struct {
		name                   string
		file                   []byte
		sealed, plain, padded  error
		fieldSealed, fieldRest string
	}{
		{"plain", plain, ErrUnsealed, nil, nil, "seal", ""},
		{"sealed", sealed, nil, nil, nil, "", ""},
		{"padded", append(slices.Clone(plain), 1, 2, 3, 4, 5), ErrTrailing, ErrTrailing, nil, "file", "file"},
		{"padded by 3", append(slices.Clone(plain), 1, 2, 3), ErrTrailing, ErrTrailing, nil, "file", "file"},
		{"seal cut", cut, ErrTruncated, ErrTruncated, ErrTruncated, "seal", "seal"},
		{"seal cut short", sealed[:len(plain)+4], ErrTruncated, ErrTruncated, ErrTruncated, "seal", "seal"},
		{"seal damaged", flipped, ErrSeal, ErrSeal, ErrSeal, "seal checksum", "seal checksum"},
		{"behind the seal", append(slices.Clone(sealed), 0), ErrTrailing, ErrTrailing, ErrTrailing, "seal", "seal"},
	} {
		for accept, want := range []error{c.sealed, c.plain, c.padded} {
			got, f, err := load(c.file, s, ReadOptions{Accept: Accept(accept)}, 64)
			if want == nil {
				if err != nil || !got.equal(st) {
					t.Errorf("%s, accept %d: %v", c.name, accept, err)
				} else if (f.Seal() != nil) != (len(c.file) == len(sealed)) {
					t.Errorf("%s, accept %d: seal %v", c.name, accept, f.Seal())
				}
				continue
			}
			field := c.fieldRest
			if accept == 0 {
				field = c.fieldSealed
			}
			wantError(t, err, want, field, -1)
		}
	}
}

// TestWantsOfTheCaller checks fingerprint and room.
func TestWantsOfTheCaller(t *testing.T) {
	plain, s, st := version1()
	mine, other := Fingerprint{1, 2}, Fingerprint{1, 3}
	sealed := mustWrite(t, st, WriteOptions{Seal: &Seal{Fingerprint: mine}})
	open := func(file []byte, o ReadOptions) error {
		_, err := Open(bytes.NewReader(file), int64(len(file)), s, o)
		return err
	}
	for _, o := range []ReadOptions{{}, {Fingerprint: mine}, {Fingerprint: mine, MaxPositions: 2}} {
		if err := open(sealed, o); err != nil {
			t.Errorf("%+v: %v", o, err)
		}
	}
	wantError(t, open(sealed, ReadOptions{Fingerprint: other}), ErrFingerprint, "fingerprint", -1)
	wantError(t, open(sealed, ReadOptions{MaxPositions: 1}), ErrTooLong, "len", -1)
	wantError(t, open(plain, ReadOptions{Accept: Plain, MaxPositions: 1}), ErrTooLong, "len", -1)
	if err := open(plain, ReadOptions{Accept: Plain, Fingerprint: other}); err != nil {
		t.Errorf("a file without seal was held against a fingerprint: %v", err)
	}
}

// TestRefusesToWrite checks what cannot be written, and that nothing is.
func TestRefusesToWrite(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	seal := &Seal{}
	for _, c := range []struct {
		name, shape string
		o           WriteOptions
		kind        error
		field       string
	}{
		{"version 3", "hybrid", WriteOptions{Version: 3}, ErrVersion, "version"},
		{"version 1 of latent attention", "latent", WriteOptions{Version: 1}, ErrUnsupported, "version"},
		{"positions below 0", "hybrid", WriteOptions{Positions: -1}, ErrNegativeLen, "len"},
		{"too many positions", "hybrid", WriteOptions{Positions: MaxPositions + 1}, ErrLenOverflow, "len"},
		{"tokens of other positions", "hybrid", WriteOptions{Positions: 1, Seal: &Seal{Tokens: tokens(2)}}, ErrSeal, "seal tokens"},
		{"no place for positions", "recurrent", WriteOptions{}, ErrUnsupported, "len"},
		{"no interval", "irregular", WriteOptions{}, ErrUnsupported, "full_attn_interval"},
		{"two kinds that grow", "mixed", WriteOptions{Version: 2}, ErrUnsupported, "full_attn_interval"},
		{"two kinds that grow, sealed, as version 1", "mixed", WriteOptions{Version: 1, Seal: seal}, ErrUnsupported, "version"},
	} {
		t.Run(c.name, func(t *testing.T) {
			st := randomState(rng, shapes[c.shape], 4, max(min(c.o.Positions, 8), 0))
			var b bytes.Buffer
			n, err := Write(&b, st.s, st, c.o)
			wantError(t, err, c.kind, c.field, -1)
			if n != 0 || b.Len() != 0 {
				t.Errorf("%d bytes were written", b.Len())
			}
			_, err = Size(st.s, c.o)
			wantError(t, err, c.kind, c.field, -1)
		})
	}
}

// TestEncode checks the form that writes to memory.
func TestEncode(t *testing.T) {
	want, s, st := version1()
	o := WriteOptions{Positions: 2}
	big := bytes.Repeat([]byte{0xAA}, len(want)+9)
	if n, err := Encode(big, s, st, o); n != len(want) || err != nil || !bytes.Equal(big[:n], want) || !bytes.Equal(big[n:], bytes.Repeat([]byte{0xAA}, 9)) {
		t.Errorf("Encode: %d bytes, %v", n, err)
	}
	small := make([]byte, len(want)-1)
	n, err := Encode(small, s, st, o)
	wantError(t, err, ErrBufferTooSmall, "buffer", -1)
	if e := (*Error)(nil); !errors.As(err, &e) || n != 0 || e.Got != 255 || e.Want != 256 {
		t.Errorf("%d bytes, %v", n, err)
	}
	if !bytes.Equal(small, make([]byte, len(small))) {
		t.Error("a buffer that is too small was written to")
	}
}

func TestShapeValidate(t *testing.T) {
	for name, s := range shapes {
		if err := s.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	const huge = 1 << 62
	for i, c := range []struct {
		shape  string
		change func(*Shape)
	}{
		{"hybrid", func(s *Shape) { s.Layers = nil }},
		{"hybrid", func(s *Shape) { s.Layers = make([]model.Mixer, maxLayers+1) }},
		{"hybrid", func(s *Shape) { s.Layers[1] = 3 }},
		{"hybrid", func(s *Shape) { s.KVHeads = 0 }},
		{"hybrid", func(s *Shape) { s.HeadDim = -1 }},
		{"hybrid", func(s *Shape) { s.HeadDim = huge }},
		{"hybrid", func(s *Shape) { s.KVHeads, s.HeadDim = 1<<32, 1<<32 }},
		{"hybrid", func(s *Shape) { s.ConvRows = -1 }},
		{"hybrid", func(s *Shape) { s.ConvRows = 1 << 40 }},
		{"hybrid", func(s *Shape) { s.ConvRows, s.ConvDim = huge, 4 }},
		{"hybrid", func(s *Shape) { s.ConvDim = huge }},
		{"hybrid", func(s *Shape) { s.ValueHeads = 0 }},
		{"hybrid", func(s *Shape) { s.KeyDim = 1 << 31 }},
		{"hybrid", func(s *Shape) { s.KVLoraRank = 1 }},
		{"latent", func(s *Shape) { s.KVLoraRank = 0 }},
		{"latent", func(s *Shape) { s.RopeDim = 0 }},
		{"latent", func(s *Shape) { s.KVLoraRank = huge }},
		{"indexed", func(s *Shape) { s.IndexDim = 0 }},
		{"indexed", func(s *Shape) { s.IndexDim = huge }},
		{"indexed", func(s *Shape) { s.Indexers = nil }},
		{"indexed", func(s *Shape) { s.Indexers = s.Indexers[:2] }},
		{"blocks", func(s *Shape) { s.Layers[1] = lin }},
		{"indexed", func(s *Shape) { s.IndexGroup = 2 }},
	} {
		s := *shapes[c.shape]
		s.Layers = slices.Clone(s.Layers)
		c.change(&s)
		if s.Validate() == nil {
			t.Errorf("case %d: %+v passes", i, s)
		}
		if _, err := Open(bytes.NewReader(nil), 0, &s, ReadOptions{}); err == nil {
			t.Errorf("case %d: Open takes the shape", i)
		}
		if _, err := Size(&s, WriteOptions{}); err == nil {
			t.Errorf("case %d: Size takes the shape", i)
		}
	}
}

// TestLiesCostNothing checks that no claim of a small file is believed with memory.
func TestLiesCostNothing(t *testing.T) {
	s := &Shape{Layers: regular(maxLayers, 1, ful), KVHeads: 128, HeadDim: 256}
	f := s.fields()
	claim := append(f.appendHeader(nil, 1), 0, 0, 0x10, 0) // 2^20 positions
	lie := put(claim, 8, ^uint32(0))
	tail := append(slices.Clone(put(claim, 12, 0)), bytes.Repeat([]byte{0xFF}, 200)...)
	binary.LittleEndian.PutUint32(tail[len(tail)-12:], 1<<30)
	seal := sealed{kinds: make([]byte, 3), Seal: Seal{Tokens: tokens(5)}, positions: 5}
	raw := seal.append(nil)
	binary.LittleEndian.PutUint32(raw[sealAtTokens:], maxLen)
	for name, file := range map[string][]byte{"positions": claim, "layers": lie, "a seal's length": tail, "a seal's tokens": append(put(claim, 12, 0), raw...)} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err1 := Open(bytes.NewReader(file), int64(len(file)), s, ReadOptions{})
		_, err2 := Inspect(bytes.NewReader(file), int64(len(file)))
		runtime.ReadMemStats(&after)
		if e := (*Error)(nil); !errors.As(err1, &e) || !errors.As(err2, &e) {
			t.Errorf("%s: %v and %v", name, err1, err2)
		}
		// the kinds of 4096 layers, a few times
		if n := after.TotalAlloc - before.TotalAlloc; n > 256<<10 {
			t.Errorf("%s: %d bytes were allocated", name, n)
		}
	}
}

// TestMessages shows that errors name place, numbers and what to do.
func TestMessages(t *testing.T) {
	v1, s, _ := version1()
	for file, want := range map[string]string{
		string(put(v1, 20, 6)):     "head_dim: the state of a model of another shape: 6, expected 3",
		string(put(v1, 156, 3)):    "layer 1: keys and values: ends too soon: 96 bytes, 144 needed",
		string(put(v1, 0, 0x4D46)): "magic: not a snapshot: 0x4d46, expected 0x4d464c58",
		string(v1):                 "seal: no seal, so damage would not be noticed; to load another program's file, accept unsealed ones",
	} {
		_, err := Open(bytes.NewReader([]byte(file)), int64(len(file)), s, ReadOptions{})
		if fmt.Sprint(err) != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}
