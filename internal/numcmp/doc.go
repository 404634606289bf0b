// Package numcmp compares numbers: bit for bit, by units in the last place, by an absolute and a
// relative bound, against a scale per element, and by cosine. A comparison returns nil or a
// *Mismatch that names the worst element with what was got and wanted.
//
// Two NaNs are equal; a NaN against a number never is, under no tolerance. Infinities equal only
// themselves.
package numcmp
