// Package hub fetches files of repositories from a hub that speaks Hugging Face's API. A revision
// becomes a commit once, and all files come from that commit. A file is fetched in one connection
// at a time, goes on where an earlier attempt was cut, also one of another process, and gets its
// name when its checksum is right: the SHA-256 of files that the hub keeps as large ones, the name
// of the Git object of others.
//
// What the hub says is not trusted: names stay within a folder, sizes and checksums are compared,
// answers are bounded, and the token goes to the hub alone, never to where it redirects.
package hub
