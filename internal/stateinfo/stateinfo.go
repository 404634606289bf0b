// Package stateinfo tells what a snapshot file holds, and whether it is whole. No model is needed.
package stateinfo

import (
	"encoding/json"
	"io"
	"io/fs"
	"os"

	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/snapshot"
)

// Info is what a file says. Its JSON is that of the command state show.
type Info struct {
	File    string `json:"file"`
	Session string `json:"session,omitempty"`
	Error   string `json:"error,omitempty"` // why it is not a snapshot; the rest is empty then

	Version     int    `json:"version"`
	Positions   int    `json:"positions"`
	Layers      int    `json:"layers"`
	Linear      int    `json:"linear_attention_layers"`
	Full        int    `json:"full_attention_layers"`
	Latent      int    `json:"latent_attention_layers"`
	Windows     int    `json:"sliding_attention_layers,omitempty"`
	Sealed      bool   `json:"sealed"`
	Fingerprint string `json:"fingerprint,omitempty"` // of the model; empty if unknown
	Tokens      int    `json:"tokens"`                // whose ids are known
	NoteBytes   int    `json:"note_bytes"`

	// Of a session of run.
	Model    string `json:"model,omitempty"` // directory
	Messages int    `json:"messages"`        // of a conversation, the system's not counted

	Bytes          int64  `json:"bytes"`
	GrowingBytes   int64  `json:"growing_bytes"`   // of positions
	PositionBytes  int64  `json:"position_bytes"`  // of one position
	RecurrentBytes int64  `json:"recurrent_bytes"` // of a size that does not grow
	SealBytes      int64  `json:"seal_bytes"`
	TrailingBytes  int64  `json:"trailing_bytes"` // after the state, of unknown meaning
	Used           string `json:"used,omitempty"` // of a session: when it was saved or resumed last
	Damage         string `json:"damage,omitempty"`
	Verified       bool   `json:"verified"` // only with --verify: the content has its checksum
}

// Read fills in what a file of size bytes says. With verify it reads all of it. The error is what
// is wrong with the file, which is noted too.
func (r *Info) Read(f io.ReaderAt, size int64, verify bool) error {
	opened, err := snapshot.Inspect(f, size)
	if err != nil {
		r.Error = err.Error()
		return err
	}
	i := opened.Info()
	r.Version, r.Positions, r.Layers = i.Version, i.Positions, i.Layers
	r.Linear, r.Full, r.Latent = i.Count(model.LinearAttention), i.Count(model.FullAttention), i.Count(model.LatentAttention)
	r.Windows = i.Count(model.WindowAttention)
	r.Bytes, r.GrowingBytes, r.PositionBytes, r.RecurrentBytes = i.FileBytes, i.GrowingBytes, i.PositionBytes, i.RecurrentBytes
	r.SealBytes, r.TrailingBytes = i.SealBytes, i.TrailingBytes
	if r.Sealed = i.Seal != nil; r.Sealed {
		r.Tokens, r.NoteBytes = len(i.Seal.Tokens), len(i.Seal.Note)
		var note struct {
			Model    string            `json:"model"`
			Messages []json.RawMessage `json:"messages"`
		}
		if json.Unmarshal(i.Seal.Note, &note) == nil { // other programs' notes say what they like
			r.Model, r.Messages = note.Model, len(note.Messages)
		}
		if i.Seal.Fingerprint != (snapshot.Fingerprint{}) {
			r.Fingerprint = i.Seal.Fingerprint.String()
		}
	}
	if err = i.Damage; err == nil && verify {
		err = opened.Verify()
		r.Verified = err == nil
	}
	if err != nil {
		r.Damage = err.Error()
	}
	return err
}

// ReadFile is Read of r.File. A session is read so, too: its store would take that for a use.
func (r *Info) ReadFile(verify bool) error {
	f, err := os.Open(r.File)
	if err == nil {
		defer f.Close()
		var info fs.FileInfo
		if info, err = f.Stat(); err == nil {
			return r.Read(f, info.Size(), verify)
		}
	}
	r.Error = err.Error()
	return err
}
