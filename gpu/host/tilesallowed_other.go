//go:build amx && amd64 && !noasm && !linux

package host

// mayUseTiles says no: only Linux is asked.
func mayUseTiles() bool { return false }
