//go:build linux && (amd64 || arm64)

package cuda

import (
	"embed"
	"fmt"
	"strings"

	"github.com/moeflux/moeflux-actor/gpu/launch"
)

// Kernels of CUDA's own, in place of portable ones: NAME.cu has the kernel NAME, and includes
// others.
//
//go:embed override/*.cu
var overrides embed.FS

// overrideSource is the source of a kernel of this package's own, with its #define lines.
func overrideSource(k launch.Kernel) (string, error) {
	text, err := overrideFile(k.Name + ".cu")
	if err != nil {
		return "", fmt.Errorf("cuda: there is no kernel %q: %w", k.Name, err)
	}
	return k.Defines + text, nil
}

// overrideFile reads a file and the files that it includes.
func overrideFile(name string) (string, error) {
	b, err := overrides.ReadFile("override/" + name)
	if err != nil {
		return "", err
	}
	lines := strings.Split(string(b), "\n")
	for i, l := range lines {
		included, ok := strings.CutPrefix(l, `#include "`)
		if !ok {
			continue
		}
		text, err := overrideFile(strings.TrimSuffix(included, `"`))
		if err != nil {
			return "", err
		}
		lines[i] = fmt.Sprintf("%s\n#line %d %q", text, i+2, name)
	}
	return fmt.Sprintf("#line 1 %q\n%s", name, strings.Join(lines, "\n")), nil
}

// LimbProducts reports whether the GPU has the integer tensor cores that the kernels of override/
// use.
func (b *backend) LimbProducts() bool { return b.capability >= 80 }

// Rounds reports whether those kernels round, see Config.
func (b *backend) Rounds() bool { return b.rounds }

// CompileOwn makes machine code of a kernel of override/, or finds it in the cache, and loads it.
func (b *backend) CompileOwn(k launch.Kernel) (launch.Pipeline, error) {
	source, err := overrideSource(k)
	if err != nil {
		return nil, err
	}
	return b.load(k, source)
}

// Ahead is how many kernels are compiled in the background at once.
func (b *backend) Ahead() int { return b.most }

// PrepareOwn makes machine code of a kernel of override/, which CompileOwn loads: it is in the
// folder of the cache then, or kept where there is none or none that takes it. Nobody waits for the
// kernel, so the log is told where it cannot be made.
func (b *backend) PrepareOwn(k launch.Kernel) error {
	source, err := overrideSource(k)
	if err != nil {
		return err
	}
	image, stored, err := b.image(k, source)
	if err != nil {
		b.log.Warn("a kernel is not compiled ahead; others, which are slower, may serve in its place", "kernel", k.Name, "why", err)
		return err
	}
	if !stored {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.images[key(b.version, source, options(b.arch))] = image
	}
	return nil
}
