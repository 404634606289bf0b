// Package diskbw measures how fast a disk delivers records of one size at random places of given
// files, for several numbers of reads at once, past the page cache and through it. doctor and bench
// compare an engine's speed with it.
//
// Before a buffered read of a record, what the page cache holds of it is dropped, so that the disk
// is measured and not memory. The layers below (the drive's own memory, a host's) are out of reach:
// files that were just written may come from there.
package diskbw
