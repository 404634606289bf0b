package convert

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moeflux/moeflux-actor/io/expertfile"
	"github.com/moeflux/moeflux-actor/io/gguf"
	"github.com/moeflux/moeflux-actor/io/weights"
)

// ChecksumsName is the file that holds the checksums of all other files.
const ChecksumsName = "checksums.json"

// packFormat is the value of Checksums.Format.
const packFormat = "moeflux-actor pack 1"

// Checksums is what checksums.json holds.
type Checksums struct {
	Format string             `json:"format"`
	Files  map[string]fileSum `json:"files"` // by path in the model directory, with slashes
}

// Verify reads a whole packed model directory and compares every file with checksums.json. The
// error joins a *ChecksumError or *MissingError for each file at fault, or says that there are no
// checksums.
func Verify(ctx context.Context, dir string) error {
	return VerifyWith(ctx, dir, filepath.Join(dir, expertfile.DirName))
}

// VerifyWith is Verify of a model whose experts lie in another folder.
func VerifyWith(ctx context.Context, dir, experts string) error {
	if gguf.Is(dir) {
		return fmt.Errorf("convert: %s is a GGUF file, which has no checksums", dir)
	}
	sums, err := ReadChecksums(dir)
	if err != nil {
		return err
	}
	var names []string
	for name := range sums.Files {
		names = append(names, name)
	}
	slices.Sort(names)
	var errs []error
	for _, name := range names {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if file, ok := strings.CutPrefix(name, expertfile.DirName+"/"); ok {
			path = filepath.Join(experts, filepath.FromSlash(file))
		}
		err := verifyFile(ctx, path, name, sums.Files[name])
		if ctx.Err() != nil {
			return fmt.Errorf("convert: verify %s: %w", dir, context.Cause(ctx))
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// ReadChecksums reads the checksums of a packed model directory. The error is a *MissingError if
// there is no such file.
func ReadChecksums(dir string) (*Checksums, error) {
	raw, err := os.ReadFile(filepath.Join(dir, ChecksumsName))
	if err != nil {
		return nil, &MissingError{File: ChecksumsName, Err: err}
	}
	return parseChecksums(raw)
}

// parseChecksums reads checksums.json, which must list the files that every model has.
func parseChecksums(raw []byte) (*Checksums, error) {
	var c Checksums
	if err := json.Unmarshal(raw, &c); err != nil {
		return nil, fmt.Errorf("convert: %s: %w", ChecksumsName, err)
	}
	if c.Format != packFormat {
		return nil, fmt.Errorf("convert: %s: format %q is unknown, expected %q", ChecksumsName, c.Format, packFormat)
	}
	for name := range c.Files {
		if !filepath.IsLocal(filepath.FromSlash(name)) {
			return nil, fmt.Errorf("convert: %s: %q is not a path inside the directory", ChecksumsName, name)
		}
	}
	for _, name := range []string{weights.DataName, weights.ManifestName, configName} {
		if _, ok := c.Files[name]; !ok {
			return nil, fmt.Errorf("convert: %s: does not list %s", ChecksumsName, name)
		}
	}
	return &c, nil
}

func verifyFile(ctx context.Context, path, name string, want fileSum) error {
	f, err := os.Open(path)
	if err != nil {
		return &MissingError{File: name, Err: err}
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return &MissingError{File: name, Err: err}
	}
	if info.Size() != want.Size {
		return &ChecksumError{File: name, Want: fmt.Sprintf("%d bytes", want.Size), Got: fmt.Sprintf("%d bytes", info.Size())}
	}
	h := sha256.New()
	buf := make([]byte, 1<<20)
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n, err := f.Read(buf)
		h.Write(buf[:n])
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("convert: %w", err)
		}
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != want.SHA256 {
		return &ChecksumError{File: name, Want: want.SHA256, Got: got}
	}
	return nil
}
