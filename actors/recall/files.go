package recall

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/moeflux/moeflux-actor/internal/durable"
	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/snapshot"
)

// note is what a file says of itself beside its tokens.
type note struct {
	Scope string `json:"scope"`           // hashed
	After string `json:"after,omitempty"` // of a stretch: the name of that which it goes on from
	Of    string `json:"of,omitempty"`    // of a tip: the name of its stretch
	At    int    `json:"at"`              // where it begins, or the position of a tip
}

// parts are the two things that a state is divided into, each a snapshot of some of the layers.
type parts struct {
	rows, state             snapshot.Shape
	rowsLayers, stateLayers []int // their places in the model
}

func partsOf(s *snapshot.Shape) parts {
	p := parts{rows: *s, state: *s}
	p.rows.Layers, p.state.Layers = nil, nil
	for i, kind := range s.Layers {
		if kind == model.LinearAttention || kind == model.WindowAttention {
			p.state.Layers, p.stateLayers = append(p.state.Layers, kind), append(p.stateLayers, i)
		} else {
			p.rows.Layers, p.rowsLayers = append(p.rows.Layers, kind), append(p.rowsLayers, i)
		}
	}
	p.rows.ConvRows, p.rows.ConvDim, p.rows.ValueHeads, p.rows.ValueDim, p.rows.KeyDim = 0, 0, 0, 0, 0
	p.rows.Window, p.rows.WindowKVHeads = 0, 0
	p.state.KVHeads, p.state.KVLoraRank, p.state.RopeDim = 0, 0, 0
	if s.Window == 0 {
		p.state.HeadDim, p.state.VHeadDim = 0, 0
	}
	return p
}

// recurrent reports whether there is a state beside rows: recurrent, or the last positions of
// layers with a window.
func (p *parts) recurrent() bool { return len(p.stateLayers) > 0 }

// ofTip returns the tokens that the tip of a text has: none, unless layers with a window keep the
// last of its positions.
func (p *parts) ofTip(text []int32) []int32 {
	if p.state.Window == 0 {
		return nil
	}
	return text
}

// rowBytes returns the size of a row.
func (p *parts) rowBytes(part snapshot.Part) int {
	switch part {
	case snapshot.Latents:
		return 4 * p.rows.KVLoraRank
	case snapshot.RotatedKeys:
		return 4 * p.rows.RopeDim
	case snapshot.Values:
		if p.rows.VHeadDim > 0 {
			return 4 * p.rows.KVHeads * p.rows.VHeadDim
		}
	}
	return 4 * p.rows.KVHeads * p.rows.HeadDim
}

// rowsFrom is the layers of a state that a snapshot has, from a position on.
type rowsFrom struct {
	snapshot.Source
	layers []int
	from   int
}

func (r rowsFrom) ReadRows(layer int, p snapshot.Part, first int, dst []byte) error {
	return r.Source.ReadRows(r.layers[layer], p, r.from+first, dst)
}

// rowsTo is likewise a state that is being filled, up to a position.
type rowsTo struct {
	snapshot.Target
	layers     []int
	from, upTo int
	width      func(snapshot.Part) int
}

func (r rowsTo) WriteRows(layer int, p snapshot.Part, first int, src []byte) error {
	if r.width != nil {
		room := max(0, r.upTo-r.from-first) * r.width(p)
		if src = src[:min(len(src), room)]; len(src) == 0 {
			return nil
		}
	}
	return r.Target.WriteRows(r.layers[layer], p, r.from+first, src)
}

// keyFile has the key of the hashes in a folder's files.
const keyFile = "key"

// readKey returns the key of a folder, which it makes if there is none.
func readKey(dir string) ([]byte, error) {
	path := filepath.Join(dir, keyFile)
	key, err := os.ReadFile(path)
	if err == nil && len(key) == sha256.Size || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	key = make([]byte, sha256.Size)
	_, _ = rand.Read(key) // which never fails
	if err := durable.WriteFile(path, durable.Private, key); err != nil {
		return nil, err
	}
	return os.ReadFile(path) // that of whoever was last
}

// scope returns the name that a scope has in files.
func (s *Store) scope(scope string) string {
	h := hmac.New(sha256.New, s.key)
	h.Write([]byte(scope))
	return hex.EncodeToString(h.Sum(nil))
}

// name returns the name of the file for a text in a place. It begins with what the file is.
func (s *Store) name(kind string, in place, text []int32) string {
	h := hmac.New(sha256.New, s.key)
	h.Write(in.identity[:])
	h.Write([]byte(in.scope))
	for _, id := range text {
		var b [4]byte
		binary.LittleEndian.PutUint32(b[:], uint32(id))
		h.Write(b[:])
	}
	return kind + hex.EncodeToString(h.Sum(nil)[:16])
}

// What a file's name begins with.
const (
	stretchName = "rows-"
	tipName     = "state-"
)
