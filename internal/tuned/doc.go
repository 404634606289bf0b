// Package tuned keeps the settings that the command tune chose for a model on this machine, and
// gives them to engines that are opened later.
//
// There is a file for each model, in the user's cache folder. It holds [Settings], and what they
// were measured with: program, machine, device, and how experts come into memory. An [Opening]
// takes them where all of that is as it was, and only for what the caller leaves open: a value that
// the caller gives always wins. Settings that change results are never among them.
//
// docs/formats.md describes the file.
package tuned
