// Package recall keeps on disk what an engine remembers of texts, so that a conversation goes on
// without being read again when memory has forgotten it, and after the process was restarted or
// killed. Package actors is the only user.
//
// Its nouns:
//
//   - Text: tokens, and the scope that they belong to. Scopes know nothing of each other.
//   - stretch: a file with the keys and values of a run of positions, and the tokens at them. It
//     goes on from a position of another stretch, or begins a text. So a turn of a conversation
//     writes what is new, and texts that begin alike have their beginning in common.
//   - tip: a file with the recurrent state at one position. Models that have such a state can go on
//     from tips alone, models that have none from any position of a stretch.
//   - Store: all files of a folder and who follows whom, in memory.
//
// Files are sealed snapshots in a folder of package snapshot/store, which writes them whole or not
// at all, durably, and for this user alone. The folder is the only truth: a stretch says in its
// note which one it follows, so there is no index that could be damaged or disagree. Several
// models and processes may use one folder. A state is found only by an engine that would compute
// the same bits (Config.Identity), and only in the scope for which it was kept. The name of a scope
// is in no file: it is a hash with a key that is the folder's own.
//
// One goroutine writes, one text after the other, and looks at the folder. Nobody waits for it:
// Keep only notes what is to be written, and Find looks in memory. When the folder is full, what
// nobody goes on from and nobody has used for longest is removed.
package recall
