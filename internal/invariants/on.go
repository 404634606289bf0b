//go:build invariants || race

package invariants

import "fmt"

// Enabled reports whether this build checks invariants. Use it to guard work that only a Check
// needs.
const Enabled = true

// Check panics with the message if ok is false.
func Check(ok bool, format string, args ...any) {
	if !ok {
		panic("broken invariant: " + fmt.Sprintf(format, args...))
	}
}
