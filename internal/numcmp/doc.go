// Package numcmp compares numbers: bit for bit, by units in the last place, by an absolute and a
// relative bound, against a scale per element, and by cosine. A comparison returns nil or a
// *Mismatch that names the worst element, its value, and the value that was wanted.
//
// Two NaNs are equal. A NaN never equals a number, whatever the tolerance, and an infinity equals
// only itself.
package numcmp
