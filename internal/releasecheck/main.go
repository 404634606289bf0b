// Command releasecheck looks into programs for macOS that were built elsewhere, as far as that can
// be done without a Mac: for which processor and from which macOS on they are, which libraries they
// load, and whether they are signed, which macOS wants of programs for arm64. It prints a line for
// each, and exits with 1 if one would not start.
//
//	go run ./internal/releasecheck FILE...
package main

import (
	"debug/macho"
	"fmt"
	"os"
	"slices"
	"strings"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: releasecheck FILE...")
		os.Exit(2)
	}
	for _, file := range os.Args[1:] {
		p, err := read(file)
		if err == nil {
			fmt.Printf("%s: %s\n", file, p)
			err = p.check()
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "releasecheck: %s: %v\n", file, err)
			os.Exit(1)
		}
	}
}

// program is what a file says of itself.
type program struct {
	cpu       macho.Cpu
	kind      macho.Type
	least     uint32 // macOS; 0: it does not say
	libraries []string
	signed    bool
}

// Load commands that debug/macho has no names for.
const (
	codeSignature = 0x1d
	minimumMacOS  = 0x24
	buildVersion  = 0x32
)

func read(file string) (*program, error) {
	f, err := macho.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	p := &program{cpu: f.Cpu, kind: f.Type}
	if p.libraries, err = f.ImportedLibraries(); err != nil {
		return nil, err
	}
	for _, l := range f.Loads {
		raw := l.Raw()
		switch f.ByteOrder.Uint32(raw) {
		case codeSignature:
			p.signed = true
		case minimumMacOS:
			p.least = f.ByteOrder.Uint32(raw[8:])
		case buildVersion: // command, size, platform, version
			p.least = f.ByteOrder.Uint32(raw[12:])
		}
	}
	return p, nil
}

func (p *program) String() string {
	signed := "not signed"
	if p.signed {
		signed = "signed"
	}
	return fmt.Sprintf("%v, %v, macOS %d.%d or newer, %s, loads %s", p.cpu, p.kind, p.least>>16, p.least>>8&0xff, signed, strings.Join(p.libraries, " "))
}

// check reports what would keep the program from starting.
func (p *program) check() error {
	foreign := slices.ContainsFunc(p.libraries, func(l string) bool {
		return !strings.HasPrefix(l, "/usr/lib/") && !strings.HasPrefix(l, "/System/Library/")
	})
	switch {
	case p.kind != macho.TypeExec:
		return fmt.Errorf("it is no program: %v", p.kind)
	case p.cpu != macho.CpuArm64 && p.cpu != macho.CpuAmd64:
		return fmt.Errorf("it is for the processor %v", p.cpu)
	case p.least == 0:
		return fmt.Errorf("it does not say for which macOS it is")
	case foreign:
		return fmt.Errorf("it loads a library that macOS does not have: %q", p.libraries)
	case p.cpu == macho.CpuArm64 && !p.signed:
		return fmt.Errorf("it is not signed; macOS starts no such program on arm64")
	}
	return nil
}
