package tune

import (
	"strings"
	"testing"
)

// What is said to be needed is more than what was too little, in whole seconds.
func TestTooShort(t *testing.T) {
	for _, c := range []struct {
		given, needed float64
		want          string
	}{
		{1, 1.2, "1 s are too few to compare anything on this machine, about 2 s are needed"},
		{3, 2.5, "3 s are too few to compare anything on this machine, about 4 s are needed"},
		{10, 25.1, "10 s are too few to compare anything on this machine, about 26 s are needed"},
	} {
		if got := (&TooShortError{c.given, c.needed}).Error(); !strings.HasPrefix(got, c.want+";") {
			t.Errorf("%g s given, %g needed: %q", c.given, c.needed, got)
		}
	}
}
