// Package invariants holds checks of what must never be broken, for places where the check itself
// costs. They run in builds with the tag "invariants" and in builds with the race detector, and are
// nothing otherwise.
package invariants
