package main

import (
	"context"
	"os"
	"time"

	"github.com/moeflux/moeflux-actor/internal/process"
	"github.com/moeflux/moeflux-actor/internal/remoterecords"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// recordsFlags say where records are read from: a file, or a running server.
type recordsFlags struct {
	From  string        `placeholder:"URL" help:"A running server (moeflux-actor serve) in place of a file. Where the server wants a key, it is an admin's, in the environment variable MOEFLUX_API_KEY."`
	For   time.Duration `placeholder:"TIME" help:"With --from: the records of this time from now on. Default: those that the server has."`
	Model string        `placeholder:"NAME" help:"With --from: which of its models."`
}

// read reads the file, or what the server has.
func (f *recordsFlags) read(ctx context.Context, file string) (*record.Recording, error) {
	switch {
	case f.From == "" && (f.For != 0 || f.Model != ""):
		return nil, process.Usagef("--for and --model belong to --from")
	case f.From == "" && file == "":
		return nil, process.Usagef("there are no records: name a FILE, or a server with --from")
	case f.From == "":
		return readRecords(file)
	case file != "":
		return nil, process.Usagef("there are two sources of records: %s, and --from %s", file, f.From)
	}
	from := remoterecords.From{URL: f.From, Model: f.Model, Key: os.Getenv(remoterecords.Variable), Seconds: f.For.Seconds()}
	if err := from.Validate(); err != nil {
		return nil, process.Usagef("--from: %v", err)
	}
	return remoterecords.Read(ctx, from)
}

// source is how messages name the records.
func (f *recordsFlags) source(file string) string {
	if f.From != "" {
		return f.From
	}
	return file
}
