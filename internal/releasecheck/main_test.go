package main

import (
	"bytes"
	"debug/macho"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// build builds the smallest program for macOS.
func build(t *testing.T, arch string) string {
	t.Helper()
	dir := t.TempDir()
	source, file := filepath.Join(dir, "main.go"), filepath.Join(dir, "program")
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() {}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	c := exec.Command("go", "build", "-trimpath", "-ldflags=-s", "-o", file, source)
	c.Env = append(os.Environ(), "GOOS=darwin", "GOARCH="+arch, "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return file
}

// What Go's linker makes for a Mac would start there, and without its signature would not.
func TestPrograms(t *testing.T) {
	file := build(t, "arm64")
	p, err := read(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.check(); err != nil || p.cpu != macho.CpuArm64 || !p.signed || p.least < 11<<16 || !strings.Contains(p.String(), "libSystem") {
		t.Errorf("%v: %v", p, err)
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var command [4]byte
	binary.LittleEndian.PutUint32(command[:], codeSignature)
	at := bytes.Index(raw[32:], append(command[:], 16, 0, 0, 0)) + 32 // after the header
	raw[at] = 0x7f
	if err := os.WriteFile(file, raw, 0o755); err != nil {
		t.Fatal(err)
	}
	if p, err = read(file); err != nil {
		t.Fatal(err)
	}
	if err := p.check(); err == nil || !strings.Contains(err.Error(), "not signed") {
		t.Errorf("without its signature: %v", err)
	}
}

func TestCheck(t *testing.T) {
	good := program{cpu: macho.CpuAmd64, kind: macho.TypeExec, least: 12 << 16, libraries: []string{"/usr/lib/libSystem.B.dylib"}}
	if err := good.check(); err != nil {
		t.Error(err)
	}
	for part, change := range map[string]func(p *program){
		"no program": func(p *program) { p.kind = macho.TypeObj }, "processor": func(p *program) { p.cpu = macho.CpuPpc },
		"which macOS": func(p *program) { p.least = 0 }, "a library": func(p *program) { p.libraries = append(p.libraries, "/opt/lib/x.dylib") },
	} {
		p := good
		p.libraries = append([]string(nil), good.libraries...)
		change(&p)
		if err := p.check(); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v", part, err)
		}
	}
	if _, err := read("main.go"); err == nil {
		t.Error("a file of text is taken for a program")
	}
}
