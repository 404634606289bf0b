// Package shaders holds the kernels of devices that are not the processor, in the subset of the
// Metal Shading Language that docs/gpu.md describes. Each file covers one subject. Files without
// kernels, such as product.metal and common.metal, are only included. What a kernel's #define lines
// mean stands before it; gpu/launch's table of kernels names them in order.
package shaders

import (
	"embed"
	"fmt"
)

//go:embed *.metal
var files embed.FS

// Read returns a file's text.
func Read(name string) (string, error) {
	b, err := files.ReadFile(name)
	if err != nil {
		return "", fmt.Errorf("shaders: %w", err)
	}
	return string(b), nil
}

// Files returns the names of all files, in order.
func Files() ([]string, error) {
	entries, err := files.ReadDir(".")
	if err != nil {
		return nil, fmt.Errorf("shaders: %w", err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, nil
}
