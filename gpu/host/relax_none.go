//go:build noasm || (!amd64 && !arm64)

package host

// relax does nothing.
func relax() {}

// fetch does nothing.
func fetch(uintptr, int) {}
