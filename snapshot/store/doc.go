// Package store keeps sessions on disk: a folder of sealed snapshots, so that a process that starts
// again goes on with a long text without reading it again.
//
// Its nouns: a session is a snapshot with its token ids under a name; a Store is the folder; an FS
// is what the store asks of a file system. Put replaces a session whole or not at all, Get opens
// one by name, Longest finds the one that has read most of a list of tokens. The content is up to
// package snapshot and the engine: it comes from a function that writes, and leaves through an
// io.ReaderAt.
//
// The snapshots are the only truth. There is no index: a file's name is the session's
// name, its seal has the model's fingerprint and the token ids, its modification time tells when it
// was used last. The hashes of token lists that make the search quick are worked out from seals and
// kept in memory, and what they find is compared with the seal before it is believed.
//
// A session is written under a temporary name, synced, checked, renamed, and then the folder is
// synced. Hence a reader needs no lock: it sees the old file or the new one, and what it has opened
// stays what it was. Writers of any number of processes take a lock on the folder, while they make
// and rename files, not while they write. Renames alone would not do: whether a temporary file's
// writer lives, and whether a session about to be removed to make room was replaced a moment
// ago, can only be seen with a lock. Each temporary file is locked by its writer, too. The system
// takes locks from a process that dies, however it dies: so a leftover is told from work under way.
package store
