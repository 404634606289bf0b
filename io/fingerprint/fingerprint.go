package fingerprint

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/moeflux/moeflux-actor/io/convert"
	"github.com/moeflux/moeflux-actor/io/expertfile"
	"github.com/moeflux/moeflux-actor/io/gguf"
	"github.com/moeflux/moeflux-actor/io/weights"
)

// Fingerprint identifies a packed model.
type Fingerprint [sha256.Size]byte

// rule ends every fingerprint that Of returns, in place of the last bytes of the hash. Those of the
// former rule have it by a chance of 2^-32.
var rule = [4]byte{'m', 'f', 'p', 2}

// String returns the fingerprint in hexadecimal digits.
func (f Fingerprint) String() string { return hex.EncodeToString(f[:]) }

// Current reports whether the fingerprint follows the rule of Of, and not the former one.
func (f Fingerprint) Current() bool { return bytes.HasSuffix(f[:], rule[:]) }

// Of returns the fingerprint of the model in a packed directory. experts is the folder of its
// experts, in the sense of expertfile.OpenIn, if that is another place; else it is empty. Moving
// the experts leaves the fingerprint as it is if they have checksums of their records.
func Of(dir, experts string) (Fingerprint, error) {
	m := model{hash: sha256.New()}
	if err := m.add(dir, experts); err != nil {
		return Fingerprint{}, fmt.Errorf("fingerprint: %w", err)
	}
	f := Fingerprint(m.hash.Sum(nil))
	copy(f[len(f)-len(rule):], rule[:])
	return f, nil
}

// model is what has been hashed of a model.
type model struct {
	hash hash.Hash
	sums *convert.Checksums // nil if there are none
}

func (m *model) add(dir, experts string) error {
	if gguf.Is(dir) {
		return m.addGGUF(dir)
	}
	var err error
	if m.sums, err = convert.ReadChecksums(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	paths := weights.Find(dir)
	for _, path := range []string{paths.Config, paths.Manifest, filepath.Join(dir, convert.SynthName)} {
		if err := m.text(path); err != nil {
			return err
		}
	}
	if err := m.weights(paths.Data, weights.DataName); err != nil {
		return err
	}
	return m.experts(dir, experts)
}

// addGGUF adds the files of a model: their sizes, and all that they say of themselves, which is
// where every tensor lies and of what type it is.
func (m *model) addGGUF(path string) error {
	f, err := gguf.OpenModel(path)
	if err != nil {
		return err
	}
	defer f.Close()
	for _, part := range f.Files() {
		sum := sha256.Sum256(part.Begin())
		m.line(part.Path(), part.Bytes(), hex.EncodeToString(sum[:]))
	}
	return nil
}

// experts adds the routed experts.
func (m *model) experts(dir, elsewhere string) error {
	cfg, err := weights.ReadConfig(dir)
	if err != nil {
		return err
	}
	folder := expertfile.Find(dir, cfg)
	if elsewhere != "" {
		folder = expertfile.FindIn(elsewhere, cfg)
	}
	sums := filepath.Join(folder, expertfile.SumsName)
	for _, path := range []string{filepath.Join(folder, expertfile.LayoutName), sums} {
		if err := m.text(path); err != nil {
			return err
		}
	}
	_, err = os.Stat(sums)
	own := filepath.Clean(folder) == filepath.Join(dir, expertfile.DirName)
	for _, layer := range cfg.MoELayers() {
		listed := ""
		if own && err != nil { // the checksums of records say as much, and move with the experts
			listed = expertfile.DirName + "/" + expertfile.LayerName(layer)
		}
		if err := m.weights(filepath.Join(folder, expertfile.LayerName(layer)), listed); err != nil {
			return err
		}
	}
	return nil
}

// text adds a file by its content, if there is one.
func (m *model) text(path string) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	of := sha256.New()
	size, err := io.Copy(of, f)
	if err != nil {
		return err
	}
	m.line(path, size, hex.EncodeToString(of.Sum(nil)))
	return nil
}

// weights adds a file by its size, and by its checksum if the model's checksums list it.
func (m *model) weights(path, listed string) error {
	s, err := os.Stat(path)
	if err != nil {
		return err
	}
	sum := ""
	if m.sums != nil {
		sum = m.sums.Files[listed].SHA256
	}
	m.line(path, s.Size(), sum)
	return nil
}

func (m *model) line(path string, size int64, sum string) {
	fmt.Fprintf(m.hash, "%q %d %s\n", filepath.Base(path), size, sum)
}
