// Package process is what a command finds around itself while it runs: the streams and whether
// they are terminals, the machine and the user's folders, signals, the errors that end it, and a
// line or a bar that says how far it has come.
package process
