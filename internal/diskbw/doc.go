// Package diskbw measures how fast a disk delivers records of one size at random places of given
// files: by how many reads at once, past the page cache and through it. It is what doctor and bench
// hold an engine's speed against.
//
// What the page cache holds of a record is given up before a buffered read of it, so that the disk
// is measured and not memory. The layers below (the drive's own memory, a host's) are out of reach:
// files that were just written may come from there.
package diskbw
