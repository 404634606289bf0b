package snapshot

import (
	"encoding/binary"

	"github.com/moeflux/moeflux-actor/model"
)

// The words that a file begins with, and the sizes of its header. Magic is the letters MFLX, first
// letter highest, so that the file begins with XLFM.
const (
	Magic    = 0x4D464C58
	Version1 = 1 // full attention and linear attention
	Version2 = 2 // latent attention too
	Version4 = 4 // latent attention with indexers; nobody else has such models

	Version6 = 6 // windows, and values narrower than keys; likewise

	HeaderBytes1 = 32 // of version 1
	HeaderBytes2 = 40 // of version 2
	HeaderBytes4 = 44 // of version 4
	HeaderBytes6 = 56 // of version 6
)

const (
	magic       = Magic
	headerWords = HeaderBytes6 / 4
	versionOwn  = 3 // of states with codes, in the form of version 2; not for others
	versionOwn4 = 5 // of states with codes, in the form of version 4; not for others
	versionOwn6 = 7 // likewise of version 6
	headerBase  = 2 // words before the fields: magic, version
	lenBytes    = 4 // of the number of positions before a growing layer's rows
	maxLen      = 1 << 20
	lenField    = "len"
	headerField = "header"
)

// MaxPositions is the highest number of positions that readers of the format accept.
const MaxPositions = maxLen

// fieldNames are the fields after magic and version. Version 1 has the first six, version 2 the
// first eight.
var fieldNames = [headerWords - headerBase]string{
	"num_layers", "full_attn_interval", "num_kv_heads", "head_dim", "linear_conv_bytes", "linear_ssm_bytes", "kv_lora_rank", "qk_rope_head_dim",
	"index_head_dim", "v_head_dim", "window", "window_kv_heads",
}

// fields are a header's words after magic and version; those that a version does not have are 0.
type fields [headerWords - headerBase]uint32

func headerBytes(version int) int64 {
	switch version {
	case Version1:
		return HeaderBytes1
	case Version4, versionOwn4:
		return HeaderBytes4
	case Version6, versionOwn6:
		return HeaderBytes6
	}
	return HeaderBytes2
}

// fields returns the header's fields of a valid shape.
func (s *Shape) fields() fields {
	return fields{
		uint32(len(s.Layers)), uint32(s.interval()), uint32(s.KVHeads), uint32(s.HeadDim),
		uint32(s.ConvRows * s.ConvDim * 4), uint32(s.ValueHeads * s.ValueDim * s.KeyDim * 4), uint32(s.KVLoraRank), uint32(s.RopeDim),
		uint32(s.IndexDim), uint32(s.VHeadDim), uint32(s.Window), uint32(s.WindowKVHeads),
	}
}

// appendHeader appends the header of a version.
func (f *fields) appendHeader(dst []byte, version int) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, magic)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(version))
	for _, w := range f[:headerBytes(version)/4-headerBase] {
		dst = binary.LittleEndian.AppendUint32(dst, w)
	}
	return dst
}

// readHeader reads magic, version and fields. The version is one that may hold the shape; without a
// shape it is any but those that are not for others.
func (in *input) readHeader(s *Shape) (version int, f fields, err error) {
	var buf [headerWords * 4]byte
	if err := in.readAt(buf[:headerBase*4], 0, -1, headerField); err != nil {
		return 0, f, err
	}
	word := func(i int) uint32 { return binary.LittleEndian.Uint32(buf[4*i:]) }
	if word(0) != magic {
		return 0, f, wrong(ErrNotSnapshot, "magic", int64(word(0)), magic)
	}
	if v := word(1); v > versionOwn6 || !s.known(int(v)) {
		e := wrong(ErrVersion, "version", int64(v), Version2)
		e.Detail = "versions 1, 2, 4 and 6 are known; 4 is that of models with indexers, 6 that of models with windows"
		return 0, f, e
	}
	version = int(word(1))
	n := headerBytes(version)
	if err := in.readAt(buf[:n], 0, -1, headerField); err != nil {
		return 0, f, err
	}
	for i := range int(n/4) - headerBase {
		f[i] = word(headerBase + i)
	}
	return version, f, nil
}

// checkHeader compares a header with the shape and reports the first field that differs.
func (s *Shape) checkHeader(version int, got fields) error {
	want := s.fields()
	if version == Version1 && s.version() == Version2 {
		e := wrong(ErrVersion, "version", 1, 2)
		e.Detail = "version 1 has no latent attention"
		return e
	}
	for i, w := range want {
		if got[i] != w {
			return wrong(ErrShape, fieldNames[i], int64(got[i]), int64(w))
		}
	}
	return nil
}

// version returns the lowest version that holds the shape.
func (s *Shape) version() int {
	switch {
	case s.coded() && (s.Window > 0 || s.VHeadDim > 0):
		return versionOwn6
	case s.Window > 0 || s.VHeadDim > 0:
		return Version6
	case s.coded() && s.Indexers != nil:
		return versionOwn4
	case s.coded():
		return versionOwn
	case s.Indexers != nil:
		return Version4
	}
	for _, k := range s.Layers {
		if k == model.LatentAttention {
			return 2
		}
	}
	return 1
}

// known reports whether a file of the version may hold the shape, or, of none, one that is meant
// for others.
func (s *Shape) known(version int) bool {
	switch {
	case s == nil:
		return version == Version1 || version == Version2 || version == Version4 || version == Version6
	case s.version() > Version2:
		return version == s.version()
	}
	return version == Version1 || version == Version2
}

// shape returns what a header alone tells about the state: sizes, not what they are made of. kinds
// is what the seal says about the layers; nil leaves that to the header.
func (f *fields) shape(kinds []byte) (*Shape, error) {
	n, every := f[0], f[1]
	if n < 1 || n > maxLayers {
		return nil, wrong(ErrShape, fieldNames[0], int64(n), maxLayers)
	}
	layers, indexers := ofKinds(kinds)
	if kinds == nil {
		if every < 1 || every > n {
			return nil, wrong(ErrShape, fieldNames[1], int64(every), int64(n))
		}
		kind := model.FullAttention
		if f[6] > 0 {
			kind = model.LatentAttention
		}
		layers = regular(int(n), int(every), kind)
	}
	// Parts of which the header has only the size count as rows of one value.
	s := &Shape{
		Layers: layers, KVHeads: int(f[2]), HeadDim: int(f[3]), KVLoraRank: int(f[6]), RopeDim: int(f[7]),
		Indexers: indexers, IndexDim: int(f[8]), VHeadDim: int(f[9]), Window: int(f[10]), WindowKVHeads: int(f[11]),
		ConvRows: int(f[4] / 4), ConvDim: 1, ValueHeads: int(f[5] / 4), ValueDim: 1, KeyDim: 1,
	}
	for i := 4; i <= 5; i++ {
		if f[i]%4 != 0 {
			return nil, wrong(ErrShape, fieldNames[i], int64(f[i]), int64(f[i]/4*4))
		}
	}
	if err := s.Validate(); err != nil {
		e := wrong(ErrShape, headerField, 0, 0)
		e.Err = err
		return nil, e
	}
	return s, nil
}
