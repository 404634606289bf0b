package convert

import (
	"io/fs"

	"github.com/moeflux/moeflux-actor/internal/durable"
)

// WithFiles returns options whose files are written to a file system.
func (o Options) WithFiles(files durable.FS) Options {
	o.files = files
	return o
}

// WithCreate returns options whose files are opened by create.
func (o Options) WithCreate(create func(path string) (durable.File, error)) Options {
	return o.WithFiles(creating{create: create})
}

type creating struct {
	durable.OS
	create func(path string) (durable.File, error)
}

func (c creating) Create(path string, _ fs.FileMode) (durable.File, error) { return c.create(path) }

// PackName is packName.
func PackName(name string) (pack string, ok bool) { return packName(name, new(left)) }

// StateName is stateName.
const StateName = stateName
