package server

import (
	"context"
	"os"
	"time"

	"github.com/moeflux/moeflux-actor/server/access"
)

// keysEvery is how often a file of keys is looked at.
const keysEvery = time.Second

// FollowKeys sets the keys that a file has, now, whenever it changes, and for each signal, until
// ctx ends. A file that cannot be read, or has a mistake, is told in the log, and the keys stay as
// they are. A file that is still being written is left alone until it has not changed for a second.
func (s *Server) FollowKeys(ctx context.Context, path string, again <-chan os.Signal) {
	ticker := time.NewTicker(keysEvery)
	defer ticker.Stop()
	set, seen := markOf(path), fileMark{}
	s.readKeys(path)
	for {
		select {
		case <-ctx.Done():
			return
		case <-again:
			set = markOf(path)
			s.readKeys(path)
		case <-ticker.C:
			now := markOf(path)
			if now != set && now == seen {
				set = now
				s.readKeys(path)
			}
			seen = now
		}
	}
}

// fileMark tells one state of a file from another; the zero value is of a file that is not there.
type fileMark struct {
	modified time.Time
	size     int64
}

func markOf(path string) fileMark {
	info, err := os.Stat(path)
	if err != nil {
		return fileMark{}
	}
	return fileMark{info.ModTime(), info.Size()}
}

func (s *Server) readKeys(path string) {
	keys, err := access.ReadFile(path)
	if err == nil {
		err = s.SetKeys(keys)
	}
	if err != nil {
		s.o.Logger.Error("the keys stay as they are", "file", path, "error", err)
		return
	}
	s.o.Logger.Info("the keys are read", "file", path, "keys", len(keys))
}

// SetKeys replaces the keys (Options.Keys). Requests under way are not touched, and what keys of
// the same name have used counts on. The error says which key is wrong; all stay as they were then.
func (s *Server) SetKeys(keys []access.Key) error { return s.keys.Set(keys) }
