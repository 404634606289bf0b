// Package snapshot is the wire format of a sequence's state: keys and values of every position, and
// the recurrent state. Files are those of moeflux and flash-moe, byte for byte: version 1, and
// version 2 for latent attention. After the body, where other readers stop, comes a seal:
// checksums, the model's fingerprint, the token ids. docs/snapshots.md is the format in full.
//
// Its nouns: a [Shape] says what a model's state is made of; a [Source] is a state that is read,
// row by row, while it is written out ([Write], [Encode]); a [Target] is one that is filled. [Open]
// checks all of a file but the checksum of its body, before anything is filled; [File.Fill]
// fills, and compares the checksum with what it has handed over. [Inspect] opens a file without a
// model, to show what it is.
//
// No state is held twice: reading goes through one buffer and writing through two, each of at most
// [BufferBytes] or one row, whichever is larger.
//
// The package knows neither engine nor device. The caller makes a fresh state, has it filled, and
// only then puts it in the old one's place, so a failure changes nothing. The engine decides when a
// state may be read, and what to forget when it gets another.
package snapshot
