//go:build linux && (amd64 || arm64)

package emu

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/ebitengine/purego"
	"golang.org/x/sys/unix"

	"github.com/moeflux/moeflux-actor/internal/durable"
)

// builder builds and opens libraries.
type builder struct {
	compiler *compiler
	cache    string // directory, or ""
}

// open returns the handle of the library built from source, which may be in the cache already.
// global makes its names visible to libraries opened later.
func (b *builder) open(name, source string, global bool) (uintptr, error) {
	mode := purego.RTLD_NOW | purego.RTLD_LOCAL
	if global {
		mode = purego.RTLD_NOW | purego.RTLD_GLOBAL
	}
	key := b.key(source)
	if b.cache != "" {
		if h, err := purego.Dlopen(filepath.Join(b.cache, key+".so"), mode); err == nil {
			return h, nil
		}
		unlock, err := b.lock(key)
		if err != nil {
			return 0, fmt.Errorf("emu: building %s: %w", name, err)
		}
		defer unlock()
		if h, err := purego.Dlopen(filepath.Join(b.cache, key+".so"), mode); err == nil {
			return h, nil // somebody else built it meanwhile
		}
	}
	dir, err := os.MkdirTemp(b.cache, "build-")
	if err != nil {
		return 0, fmt.Errorf("emu: building %s: %w", name, err)
	}
	defer os.RemoveAll(dir) // a library that is open stays open
	text, library := filepath.Join(dir, key+".cpp"), filepath.Join(dir, key+".so")
	if err := os.WriteFile(text, []byte(source), 0o644); err != nil {
		return 0, fmt.Errorf("emu: building %s: %w", name, err)
	}
	if err := b.compiler.build(text, library); err != nil {
		return 0, fmt.Errorf("emu: building %s: %w", name, err)
	}
	if b.cache != "" { // whole or not at all: others may be looking for it
		kept := filepath.Join(b.cache, key+".so")
		built, err := os.ReadFile(library)
		if err == nil {
			err = durable.WriteFile(kept, durable.Shared, built)
		}
		if err != nil {
			return 0, fmt.Errorf("emu: keeping %s: %w", name, err)
		}
		library = kept
	}
	h, err := purego.Dlopen(library, mode)
	if err != nil {
		return 0, fmt.Errorf("emu: opening %s: %w", name, err)
	}
	return h, nil
}

// lock lets one caller at a time build a library, across processes.
func (b *builder) lock(key string) (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(b.cache, key+".lock"), os.O_CREATE|os.O_RDWR, durable.Shared.File())
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		f.Close()
		return nil, fmt.Errorf("locking %s: %w", f.Name(), err)
	}
	return func() {
		os.Remove(f.Name()) // whoever waits for it looks for the library first
		f.Close()
	}, nil
}

// key names a library by everything that goes into it. A compiler is the same by whatever link it
// is found.
func (b *builder) key(source string) string {
	path, err := filepath.EvalSymlinks(b.compiler.path)
	if err != nil {
		path = b.compiler.path
	}
	h := sha256.New()
	for _, part := range []string{path, b.compiler.version, strings.Join(b.compiler.flags, " "), source} {
		fmt.Fprintf(h, "%d\n%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// symbols looks names up in a library.
func symbols(h uintptr, names ...string) ([]uintptr, error) {
	var all []uintptr
	var errs []error
	for _, n := range names {
		p, err := purego.Dlsym(h, n)
		if err != nil {
			errs = append(errs, fmt.Errorf("emu: %w", err))
		}
		all = append(all, p)
	}
	return all, errors.Join(errs...)
}
