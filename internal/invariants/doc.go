// Package invariants holds checks of what must never be broken, for places where the check itself
// costs time. They run in builds with the tag "invariants" and in builds with the race detector,
// and compile to nothing otherwise.
package invariants
