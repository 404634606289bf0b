package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/moeflux/moeflux-actor/internal/cgroup"
)

// groups makes cgroups with memory limits, and drops caches.
type groups struct {
	tree *cgroup.Tree
	drop string // the file that drops the page cache
}

// findGroups finds what groups needs below root. The error says what is missing and what to do.
func findGroups(root string, user int) (*groups, error) {
	tree, err := cgroup.FindMemory(root, user)
	if err != nil {
		return nil, err
	}
	g := &groups{tree: tree, drop: filepath.Join(root, "proc/sys/vm/drop_caches")}
	if _, err := os.Stat(g.drop); err != nil {
		return nil, fmt.Errorf("the page cache cannot be dropped without Linux: %w", err)
	}
	return g, nil
}

// make makes a group with a limit.
func (g *groups) make(name string, limit int64) (*cgroup.Group, error) {
	n, err := g.tree.Make(name)
	if err != nil {
		return nil, err
	}
	if err := n.SetLimit(limit); err != nil {
		return nil, errors.Join(err, n.Remove())
	}
	return n, nil
}

// dropCaches makes the next start a cold one. The caller must have synced.
func (g *groups) dropCaches() error {
	if err := os.WriteFile(g.drop, []byte("3"), 0); err != nil {
		return fmt.Errorf("dropping the page cache: %w", err)
	}
	return nil
}
