package fleet

import (
	"context"
	"strings"
	"testing"
	"time"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/server/models"
)

// With a folder for states a text goes on after its model was unloaded and loaded again: unloading
// waits until what is to be kept is written.
func TestUnloadKeepsTexts(t *testing.T) {
	dir, err := moeflux.DemoDir(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		disk int64
		kept bool
	}{{1 << 30, true}, {0, false}} {
		o := moeflux.Options{Threads: 1}
		o.Config.StateDir, o.Config.StateDisk = t.TempDir(), tc.disk
		f, err := New(Options{
			Entries: []Entry{{Spec: Spec{Name: "demo", Need: Need{Fixed: 1 << 20}}, Open: func(ctx context.Context) (Loaded, error) {
				m, err := moeflux.Open(ctx, dir, o)
				if err != nil {
					return nil, err
				}
				return Of(m), nil
			}}},
			Memory: 1 << 30, UnloadAfter: time.Millisecond,
		})
		if err != nil {
			t.Fatal(err)
		}
		m := f.Models()[0]
		r := moeflux.Request{Prompt: strings.Repeat("if err != nil {\n\treturn nil, err\n}\n", 20), MaxTokens: 4}
		var read, known []int // of each request
		for range 2 {
			var ids []int32
			for e, err := range m.Generate(t.Context(), r) {
				switch {
				case err != nil:
					t.Fatal(err)
				case e.Prompt != nil:
					ids = e.Prompt.IDs
				case e.End != nil:
					read, known = append(read, e.End.Usage.PromptTokens), append(known, e.End.Usage.ReusedTokens)
				}
			}
			r.Prompt, r.PromptIDs = "", append(ids, ids[:5]...) // the text goes on
			for late := time.Now().Add(20 * time.Second); m.Status() != models.Unloaded; time.Sleep(time.Millisecond) {
				if time.Now().After(late) {
					t.Fatal("the model is not unloaded")
				}
			}
		}
		if known[0] != 0 || (known[1] >= read[0]-1) != tc.kept {
			t.Errorf("with %d bytes for states %d of %d tokens were known", tc.disk, known, read)
		}
		if err := f.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
