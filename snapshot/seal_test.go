package snapshot

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// crc is a CRC of 32 bits, bit by bit: poly is the polynomial with its highest power in the lowest
// bit.
func crc(poly uint32, data ...[]byte) uint32 {
	c := ^uint32(0)
	for _, b := range slices.Concat(data...) {
		c ^= uint32(b)
		for range 8 {
			low := c & 1
			if c >>= 1; low != 0 {
				c ^= poly
			}
		}
	}
	return ^c
}

const (
	polyCastagnoli = 0x82F63B78
	polyIEEE       = 0xEDB88320
)

// TestSealLayout holds a sealed file against one made by hand.
func TestSealLayout(t *testing.T) {
	body, s, st := version1()
	print := Fingerprint{}
	for i := range print {
		print[i] = byte(200 + i)
	}
	m := make(image, 94)
	copy(m, "SLFM")
	m.word(4, 1)                          // version of the seal
	m.word(8, 256)                        // bytes of header and body, u64
	m.word(16, crc(polyCastagnoli, body)) // CRC-32C of them
	m.word(20, crc(polyIEEE, body))       // CRC-32 of them
	m.word(24, 2)                         // positions, u64
	copy(m[32:], print[:])
	m.word(64, 2)          // layers
	m.word(68, 2)          // tokens
	m[72], m[73] = 0, 1    // linear, full attention
	m.word(74, 5)          // token 0
	m.word(78, 0xFFFFFFFF) // token 1 is -1
	m.word(82, 94)         // bytes of the seal
	m.word(86, crc(polyCastagnoli, m[:86]))
	m.word(90, crc(polyIEEE, m[:86]))
	want := append(slices.Clone([]byte(body)), m...)

	seal := &Seal{Fingerprint: print, Tokens: []int32{5, -1}}
	if got := mustWrite(t, st, WriteOptions{Seal: seal}); !bytes.Equal(got, want) {
		t.Errorf("wrote\n%x, want\n%x", got, want)
	}
	got, f, err := load(want, s, ReadOptions{Fingerprint: print}, 64)
	if err != nil || !got.equal(st) {
		t.Fatalf("loaded %+v, %v", got, err)
	}
	if f.Seal().Fingerprint != print || !slices.Equal(f.Seal().Tokens, seal.Tokens) {
		t.Errorf("seal %+v", f.Seal())
	}
}

// TestNoteLayout holds a seal with a note against one made by hand; an empty note is another thing
// than none.
func TestNoteLayout(t *testing.T) {
	body, s, st := version1()
	for _, note := range []string{"", "a note"} {
		n := 78 + len(note)
		m := make(image, n+12)
		copy(m, "SLFM")
		m.word(4, 2)
		m.word(8, 256)
		m.word(16, crc(polyCastagnoli, body))
		m.word(20, crc(polyIEEE, body))
		m.word(24, 2)
		m.word(64, 2)
		m[72], m[73] = 0, 1
		m.word(74, uint32(len(note)))
		copy(m[78:], note)
		m.word(n, uint32(n+12))
		m.word(n+4, crc(polyCastagnoli, m[:n+4]))
		m.word(n+8, crc(polyIEEE, m[:n+4]))
		want := append(slices.Clone([]byte(body)), m...)
		if got := mustWrite(t, st, WriteOptions{Seal: &Seal{Note: []byte(note)}}); !bytes.Equal(got, want) {
			t.Errorf("wrote\n%x, want\n%x", got, want)
		}
		got, f, err := load(want, s, ReadOptions{}, 64)
		if err != nil || !got.equal(st) || f.Seal().Note == nil || string(f.Seal().Note) != note {
			t.Errorf("loaded %+v, %v", f, err)
		}
	}
	_, err := Size(s, WriteOptions{Seal: &Seal{Note: make([]byte, MaxNote+1)}})
	wantError(t, err, ErrSeal, "seal note", -1)
}

// reseal corrects the checksum of a seal that was changed on purpose.
func reseal(file []byte, at int) []byte {
	end := len(file) - sumsBytes
	binary.LittleEndian.PutUint32(file[end:], crc(polyCastagnoli, file[at:end]))
	binary.LittleEndian.PutUint32(file[end+4:], crc(polyIEEE, file[at:end]))
	return file
}

// TestSealLies changes what seals say and makes their checksums right again.
func TestSealLies(t *testing.T) {
	body, s, st := version1()
	at := len(body)
	file := mustWrite(t, st, WriteOptions{Seal: &Seal{Tokens: tokens(2)}})
	for _, c := range []struct {
		name  string
		at    int
		value uint32
		kind  error
		field string
		layer int
	}{
		{"version", sealAtVersion, 3, ErrVersion, "seal version", -1},
		{"version of a seal with a note", sealAtVersion, 2, ErrTruncated, "seal", -1},
		{"body", sealAtBody, 255, ErrSeal, "seal body", -1},
		{"body, upper half", sealAtBody + 4, 1, ErrSeal, "seal body", -1},
		{"positions", sealAtPositions, 3, ErrSeal, "seal tokens", -1},
		{"positions below 0", sealAtPositions + 4, 1 << 31, ErrNegativeLen, "seal positions", -1},
		{"positions beyond all", sealAtPositions, maxLen + 1, ErrLenOverflow, "seal positions", -1},
		{"more layers", sealAtLayers, 3, ErrTruncated, "seal", -1},
		{"fewer layers", sealAtLayers, 1, ErrTrailing, "seal", -1},
		{"absurd layers", sealAtLayers, maxLayers + 1, ErrSeal, "seal layers", -1},
		{"more tokens", sealAtTokens, 3, ErrTruncated, "seal", -1},
		{"fewer tokens", sealAtTokens, 1, ErrTrailing, "seal", -1},
		{"absurd tokens", sealAtTokens, maxLen + 1, ErrSeal, "seal tokens", -1},
		{"unknown kind", sealFixed - 2, 0x06000000, ErrSeal, "kind", 1},
		{"other kinds", sealFixed - 2, 0x00010000, ErrShape, "seal layers", -1},
	} {
		lie := reseal(put(file, at+c.at, c.value), at)
		_, err := Open(bytes.NewReader(lie), int64(len(lie)), s, ReadOptions{})
		t.Run(c.name, func(t *testing.T) { wantError(t, err, c.kind, c.field, c.layer) })
	}
	// Positions that the tokens do not betray.
	bare := mustWrite(t, st, WriteOptions{Seal: &Seal{}})
	lie := reseal(put(bare, at+sealAtPositions, 1), at)
	_, err := Open(bytes.NewReader(lie), int64(len(lie)), s, ReadOptions{})
	wantError(t, err, ErrSeal, "seal positions", -1)
	// Notes that are longer, shorter, or not to be there.
	noted := mustWrite(t, st, WriteOptions{Seal: &Seal{Tokens: tokens(2), Note: []byte("noted")}})
	for _, n := range []uint32{0, 4, 6, 1 << 31} {
		lie := reseal(put(noted, at+sealFixed+2+8, n), at)
		_, err := Open(bytes.NewReader(lie), int64(len(lie)), s, ReadOptions{})
		wantError(t, err, ErrSeal, "seal note", -1)
	}
	lie = reseal(put(noted, at+sealAtVersion, 1), at)
	_, err = Open(bytes.NewReader(lie), int64(len(lie)), s, ReadOptions{})
	wantError(t, err, ErrTrailing, "seal", -1)
	// A body that another seal belongs to.
	lie = reseal(put(file, at+16, 1), at)
	_, _, err = load(lie, s, ReadOptions{}, 64)
	wantError(t, err, ErrChecksum, "body", -1)
}

// TestRoundTrip writes and loads states of all shapes, lengths around a page's border among them,
// between pages of different sizes.
func TestRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for name, s := range shapes {
		for _, n := range []int{0, 1, 63, 64, 65, 300} {
			for _, version := range []int{0, max(s.version(), Version2)} {
				t.Run(fmt.Sprintf("%s/positions=%d/version=%d", name, n, version), func(t *testing.T) {
					st := randomState(rng, s, 64, n)
					seal := &Seal{Fingerprint: Fingerprint{byte(n)}, Tokens: tokens(n)}
					if n%2 == 1 {
						seal.Note = []byte("an odd number of positions")
					}
					file := mustWrite(t, st, WriteOptions{Version: version, Seal: seal})
					got, f, err := load(file, s, ReadOptions{}, 64)
					if err != nil || !got.equal(st) || f.Positions() != n || !slices.Equal(f.Seal().Tokens, seal.Tokens) || !bytes.Equal(f.Seal().Note, seal.Note) {
						t.Fatalf("%d positions, %v", n, err)
					}
					other, _, err := load(file, s, ReadOptions{}, 16)
					if err != nil || !bytes.Equal(mustWrite(t, other, WriteOptions{Version: version, Seal: seal}), file) {
						t.Errorf("through other pages: %v", err)
					}
					checkInfo(t, file, s, n, seal)
				})
			}
		}
	}
}

// checkInfo holds what a file says of itself without a model against its shape.
func checkInfo(t *testing.T, file []byte, s *Shape, positions int, seal *Seal) {
	t.Helper()
	f, err := Inspect(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	i := f.Info()
	if i.Positions != positions || !slices.Equal(i.Kinds, s.Layers) || i.KVHeads != s.KVHeads || i.HeadDim != s.HeadDim || i.KVLoraRank != s.KVLoraRank {
		t.Errorf("%+v", i)
	}
	if i.HeaderBytes+i.GrowingBytes+i.RecurrentBytes+i.SealBytes+i.TrailingBytes != int64(len(file)) || i.FileBytes != int64(len(file)) || i.TrailingBytes != 0 {
		t.Errorf("sizes do not add up to %d: %+v", len(file), i)
	}
	per := int64(count(s, ful)*s.KVHeads*(s.HeadDim+valueDim(s))+count(s, lat)*(s.KVLoraRank+s.RopeDim)+indexers(s, len(s.Layers))*s.IndexDim) * 4
	// of the last positions alone
	windows := int64(4 * count(s, win) * s.WindowKVHeads * (s.HeadDim + valueDim(s)) * min(positions, max(s.Window-1, 0)))
	if i.PositionBytes != per || i.GrowingBytes != per*int64(positions)+windows+4*int64(count(s, ful)+count(s, lat)+count(s, win)) {
		t.Errorf("%d bytes a position, want %d; %d grow", i.PositionBytes, per, i.GrowingBytes)
	}
	if i.Seal == nil || i.Damage != nil || i.Seal.Fingerprint != seal.Fingerprint || !slices.Equal(i.Seal.Tokens, seal.Tokens) {
		t.Errorf("seal %+v, damage %v", i.Seal, i.Damage)
	}
	if err := f.Verify(); err != nil {
		t.Errorf("verify: %v", err)
	}
	if err := f.Fill(nothing{}); err == nil {
		t.Error("a file that is only shown was filled in")
	}
}

// TestInspect looks at files that are damaged or of others.
func TestInspect(t *testing.T) {
	plain, _, st := version1()
	sealed := mustWrite(t, st, WriteOptions{Seal: &Seal{}})
	inspect := func(file []byte) (*File, error) { return Inspect(bytes.NewReader(file), int64(len(file))) }

	f, err := inspect(append(slices.Clone([]byte(plain)), 9, 9, 9, 9, 9))
	if err != nil || f.Info().TrailingBytes != 5 || f.Info().Seal != nil || f.Positions() != 2 {
		t.Errorf("padded: %v", err)
	}
	wantError(t, f.Verify(), ErrUnsealed, "seal", -1)

	f, err = inspect(put(sealed, len(plain)+sealAtPositions, 7))
	if err != nil {
		t.Fatal(err)
	}
	wantError(t, f.Info().Damage, ErrSeal, "seal checksum", -1)
	wantError(t, f.Verify(), ErrSeal, "seal checksum", -1)

	f, err = inspect(put(sealed, 40, 7))
	if err != nil || f.Info().Damage != nil {
		t.Fatal(err)
	}
	wantError(t, f.Verify(), ErrChecksum, "body", -1)

	rng := rand.New(rand.NewPCG(5, 6))
	for _, name := range sealOnly {
		file := mustWrite(t, randomState(rng, shapes[name], 4, 3), WriteOptions{Seal: &Seal{}})
		_, err := inspect(file[:len(file)-1])
		wantError(t, err, ErrShape, "full_attn_interval", -1)
		file[len(file)-1]++
		_, err = inspect(file)
		wantError(t, err, ErrSeal, "seal checksum", -1)
	}
	for _, c := range []struct {
		at    int
		value uint32
		field string
	}{
		{8, 0, "num_layers"}, {8, maxLayers + 1, "num_layers"}, {12, 0, "full_attn_interval"}, {12, 3, "full_attn_interval"},
		{24, 61, "linear_conv_bytes"}, {28, 63, "linear_ssm_bytes"}, {16, 1 << 31, "header"}, {28, 0, "header"},
	} {
		_, err := inspect(put(plain, c.at, c.value))
		wantError(t, err, ErrShape, c.field, -1)
	}
}
