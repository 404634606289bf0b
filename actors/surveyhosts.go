package actors

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/moeflux/moeflux-actor/actors/remote"
	"github.com/moeflux/moeflux-actor/io/modelfiles"
)

// HostSurvey is what an expert host has shown of itself and of the network to it.
type HostSurvey struct {
	Addr string
	Err  error // why it would not be asked; all else is zero then

	Device  string // what it computes on
	Experts int    // that it has memory for
	Bytes   int64  // of that memory

	RowBytes   int             // of a row on its way there
	RoundTrips []time.Duration // of pings, through both programs
	Out, In    []float64       // how fast the network was, there and back, in bytes a second, of several rounds

	// of an ask for the experts of one row of a layer, in the middle of several: how many experts,
	// how long it took here, and how long the host waited for its turn, read and computed
	AskExperts                   int
	Took, Waited, Read, Computed time.Duration
}

// SurveyHosts asks each expert host that a Config names what it has, and measures the network to
// it, on a connection of its own. Nobody else should be asking them meanwhile. It is empty if the
// Config names none.
func SurveyHosts(ctx context.Context, cfg Config) (all []HostSurvey, err error) {
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	addrs, err := cfg.hostAddrs()
	if err != nil || len(addrs) == 0 {
		return nil, err
	}
	f, err := modelfiles.Open(cfg.where())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	to, err := hostConfig(&cfg, addrs, f, identityOf(cfg).own)
	if err != nil {
		return nil, err
	}
	k := min(cmp.Or(cfg.ExpertsPerToken, f.Config.NumExpertsPerTok), f.Config.NumExpertsPerTok)
	for _, s := range remote.Look(ctx, to, k) {
		all = append(all, HostSurvey{
			Addr: s.Addr, Err: s.Err, Device: s.Room.Device, Experts: s.Room.Experts, Bytes: s.Room.Bytes, RowBytes: to.RowBytes(), RoundTrips: s.RoundTrip, Out: s.Out, In: s.In,
			AskExperts: k, Took: s.Took, Waited: s.Spent.Waited, Read: s.Spent.Read, Computed: s.Spent.Computed,
		})
	}
	return all, ctx.Err()
}
