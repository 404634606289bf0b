package stateinfo

import (
	"context"
	"time"

	"github.com/moeflux/moeflux-actor/snapshot/store"
)

// List returns the sessions of a folder, whose files have not been read yet.
func List(ctx context.Context, dir string) (all []*Info, err error) {
	folder, err := store.Dir(dir)
	if err != nil {
		return nil, err
	}
	sessions, err := store.Open(ctx, folder, store.Options{})
	if err != nil {
		return nil, err
	}
	entries, err := sessions.List()
	for _, e := range entries {
		all = append(all, &Info{File: sessions.Path(e.Name), Session: e.Name, Used: e.Used.Format(time.RFC3339)})
	}
	return all, err
}
