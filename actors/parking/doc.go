// Package parking is the store where an engine keeps states of sequences that have no place in its
// device's memory: in host memory, up to a bound, and beyond it in files. Which state is parked,
// and when it comes back, is the sequencer's to say (stages.Park); package actors is the only user.
//
// Its nouns: the Store; an entry, which is one parked state, in the form of package snapshot
// wherever it lies, so that its checksum is compared when it comes back; the folder, which belongs
// to one engine and is removed with it. What a process that died has left is removed by the next
// one that uses the same place.
//
// A state goes to host memory if it fits there. If it does not, those that have been there longest
// are moved to files until it does. Every job is a goroutine of its own, which may wait for a disk;
// nobody else waits for it.
package parking
