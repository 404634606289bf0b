package figures

import (
	"time"

	"github.com/moeflux/moeflux-actor/actors"
)

// Account is what a request has been given, and its own share of what that cost; see
// actors.Account. Times are seconds.
type Account struct {
	Requests  int64 `json:"requests"`
	Read      int64 `json:"tokens_read"`
	Reused    int64 `json:"tokens_reused"`
	Generated int64 `json:"tokens_generated"`

	Queue    float64 `json:"queue_seconds"`
	Total    float64 `json:"total_seconds"`
	Device   float64 `json:"device_seconds"`
	DiskWait float64 `json:"disk_wait_seconds"`

	Hit    int64 `json:"picks_hit"`
	Late   int64 `json:"picks_late"`
	Missed int64 `json:"picks_missed"`

	SlotBytes  int64 `json:"slot_bytes"`
	HostBytes  int64 `json:"host_bytes"`
	DiskBytes  int64 `json:"disk_bytes"`
	AheadBytes int64 `json:"ahead_bytes"` // of host_bytes and disk_bytes
}

// AccountOf returns an account as it is printed.
func AccountOf(a *actors.Account) Account {
	seconds := func(ns int64) float64 { return time.Duration(ns).Seconds() }
	return Account{
		Requests: a.Requests, Read: a.Read, Reused: a.Reused, Generated: a.Generated,
		Queue: seconds(a.QueueNS), Total: seconds(a.TotalNS), Device: seconds(a.DeviceNS), DiskWait: seconds(a.DiskWaitNS),
		Hit: a.Hit, Late: a.Late, Missed: a.Missed,
		SlotBytes: a.SlotBytes, HostBytes: a.HostBytes, DiskBytes: a.DiskBytes, AheadBytes: a.AheadBytes,
	}
}
