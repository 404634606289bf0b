// Package invariants checks what must always hold, in places where the check itself costs time. The
// checks run in builds with the tag "invariants" and in builds with the race detector. Elsewhere
// they compile to nothing.
package invariants
