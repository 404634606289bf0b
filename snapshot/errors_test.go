package snapshot_test

import (
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/snapshot"
)

// TestChecksumText holds that a checksum is shown as its bits, whatever the highest of them.
func TestChecksumText(t *testing.T) {
	e := &snapshot.Error{Kind: snapshot.ErrChecksum, Field: "body", Layer: -1, Got: 1, Want: -1}
	if got := e.Error(); !strings.HasSuffix(got, ": 0x1, want 0xffffffffffffffff") {
		t.Error(got)
	}
}
