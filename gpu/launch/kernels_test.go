package launch

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/gpu/msl"
	"github.com/moeflux/moeflux-actor/internal/testenv"
	"github.com/moeflux/moeflux-actor/model/quant"
	"github.com/moeflux/moeflux-actor/shaders"
)

// TestKernelTable wants the kernels of package shaders and the table to be the same, and every
// #define to stand in the kernel's file or one that it includes.
func TestKernelTable(t *testing.T) {
	modules, err := Modules()
	if err != nil {
		t.Fatal(err)
	}
	for name, m := range modules {
		defines, ok := kernelDefines[name]
		if !ok {
			t.Errorf("the table has no kernel %s", name)
		}
		if len(defines) > len(variant{}.values) {
			t.Errorf("%s has %d defines, a variant holds %d", name, len(defines), len(variant{}.values))
		}
		text := m.Emit(msl.Metal, name, "")
		for _, d := range defines {
			for _, line := range strings.Split(strings.TrimSpace(define(d, 0)), "\n") {
				if n := strings.Fields(line)[1]; !regexp.MustCompile(`\b` + n + `\b`).MatchString(text) {
					t.Errorf("%s: %s stands nowhere", name, n)
				}
			}
		}
	}
	for name, defines := range kernelDefines {
		for _, d := range defines {
			if samples[d] == nil {
				t.Errorf("%s: there are no samples of %s", name, d)
			}
		}
		if modules[name] == nil {
			t.Errorf("no file has the kernel %s of the table", name)
		}
	}
}

// TestAddressSpaces has clang check every kernel's address spaces, and that it uses nothing that
// Metal does not have.
func TestAddressSpaces(t *testing.T) {
	compiler := testenv.Clang(t)
	modules, err := Modules()
	if err != nil {
		t.Fatal(err)
	}
	for name, m := range modules {
		for i, defines := range Variants(name) {
			f := filepath.Join(t.TempDir(), fmt.Sprintf("%s-%d.cpp", name, i))
			if err := os.WriteFile(f, []byte(m.Emit(msl.Lint, name, defines)), 0o644); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command(compiler, append(msl.LintFlags(), f)...).CombinedOutput(); err != nil {
				t.Errorf("%s with\n%s%s", name, defines, out)
			}
		}
	}
}

// Kernels have text for every format in blocks that package quant has, and for no other.
func TestBlocksHaveText(t *testing.T) {
	text, err := shaders.Read("block.metal")
	if err != nil {
		t.Fatal(err)
	}
	_, body, _ := strings.Cut(text, "block_elements(")
	found := map[string]bool{}
	for _, m := range regexp.MustCompile(`#(?:el)?if defined\(BLOCK_(\w+)\)`).FindAllStringSubmatch(body, -1) {
		found[m[1]] = true
	}
	for _, b := range quant.Blocks() {
		if b.Len > 1 && !found[b.Name] {
			t.Errorf("block_elements in block.metal has no text for BLOCK_%s", b)
		}
		delete(found, b.Name)
	}
	if len(found) > 0 {
		t.Errorf("block.metal has text for %v, which package quant does not have", found)
	}
}

// The files that others include have no kernels; all files are read.
func TestFiles(t *testing.T) {
	files, err := shaders.Files()
	if err != nil || !slices.Contains(files, "product.metal") || !slices.Contains(files, "common.metal") {
		t.Errorf("files %v, %v", files, err)
	}
	if _, err := shaders.Read("nothing.metal"); err == nil {
		t.Error("a file that is not there gave no error")
	}
}
