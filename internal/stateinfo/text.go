package stateinfo

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/moeflux/moeflux-actor/internal/figures"
)

// Text formats a file for people.
func (r *Info) Text() string {
	var b strings.Builder
	line := func(name, format string, args ...any) { figures.Line(&b, name, format, args...) }
	line("file", "%s, %s", r.File, figures.Bytes(r.Bytes))
	line("positions", "%d of %s, %s in all", r.Positions, figures.Bytes(r.PositionBytes), figures.Bytes(r.GrowingBytes))
	line("recurrent", "%s", figures.Bytes(r.RecurrentBytes))
	line("layers", "%s", (&figures.Shape{Layers: r.Layers, LinearLayers: r.Linear, FullLayers: r.Full, LatentLayers: r.Latent, WindowLayers: r.Windows}).Kinds())
	switch {
	case r.Sealed:
		line("format", "version %d, sealed", r.Version)
		line("model", "%s", cmp.Or(r.Fingerprint, "unknown"))
		if r.Model != "" {
			line("", "in %s", r.Model)
		}
		line("tokens", "%s", map[bool]string{true: "known", false: "unknown"}[r.Tokens == r.Positions])
		if r.NoteBytes > 0 {
			line("note", "%s", figures.Bytes(int64(r.NoteBytes)))
		}
	default:
		line("format", "version %d, without a seal: nothing identifies the model or the tokens, or reveals damage", r.Version)
	}
	if r.TrailingBytes > 0 {
		line("after it", "%s of unknown meaning", figures.Bytes(r.TrailingBytes))
	}
	switch {
	case r.Damage != "":
		line("checksum", "%s", r.Damage)
	case r.Verified:
		line("checksum", "right")
	}
	return b.String()
}

// Line formats a session as a line.
func (r *Info) Line() string {
	state := fmt.Sprintf("%d positions, %s", r.Positions, figures.Bytes(r.Bytes))
	if r.Messages > 0 {
		state = fmt.Sprintf("%d messages, ", r.Messages) + state
	}
	switch {
	case r.Error != "":
		state = fmt.Sprintf("unusable, remove %s: %s", r.File, r.Error)
	case r.Damage != "":
		state += fmt.Sprintf(", damaged, remove %s: %s", r.File, r.Damage)
	case r.Verified:
		state += ", checksum right"
	}
	return fmt.Sprintf("%-20s %s  %s\n", r.Session, r.Used, state)
}
