package analyse

import (
	"cmp"
	"fmt"
)

// Cause says what a token, the device or the disk spent a moment on.
type Cause uint8

// The causes. Those of a token are ordered by how directly work is done for it.
const (
	// Device: the device computed for the token's step.
	Device Cause = iota
	// Disk: an expert was read that the step waited for.
	Disk
	// ReadQueue: a read that the step waited for had to wait until a worker was done with other
	// reads of the step.
	ReadQueue
	// Guesses: a read that the step waited for had to wait for workers that read guesses.
	Guesses
	// Upload: an expert was on its way from the host's memory to the device's.
	Upload
	// Network: an ask was on its way to an expert host or its answer on the way back, or the host
	// did not answer.
	Network
	// HostWait: an expert host had other asks to answer first.
	HostWait
	// HostDisk: an expert host read experts that the step waited for.
	HostDisk
	// HostCompute: an expert host computed.
	HostCompute
	// Room: experts waited for slots that others used, or were read again although the token before
	// had used them, because they had to leave.
	Room
	// Credit: the ring had no place for the next layer or wave.
	Credit
	// Stage: a stage handled a message of the step.
	Stage
	// Mailbox: a message had been sent, and no stage took it.
	Mailbox
	// DeviceStart: the device had commands of the step, was idle, and had not begun them.
	DeviceStart
	// OtherRequest: work for other requests went first.
	OtherRequest
	// Company: the step was held back for sequences that might join it (lingering).
	Company
	// Memory: the request waited for memory for its state.
	Memory
	// Caller: the answer to the token before was out, and nobody asked for this one.
	Caller
	// Unexplained: the records do not say.
	Unexplained
	// NumCauses is how many there are.
	NumCauses int = iota
)

// causes has the name of each cause, what it is called in a sentence, and what to change. An empty
// advice means that no setting helps.
var causes = [NumCauses]struct{ name, words, advice string }{
	Device:       {"device", "the device computed", "--device or --threads, or a model with fewer bits"},
	Disk:         {"disk", "it waited for experts that were being read", "--expert-memory, so that more stay in memory; --prefetch both, so that more are read ahead; a faster disk (moeflux-actor doctor measures it)"},
	ReadQueue:    {"read_queue", "reads that it waited for stood in line behind its other reads", "--read-workers, unless the disk is busy as it is (moeflux-actor doctor)"},
	Guesses:      {"guesses", "reads that it waited for stood in line behind reads of guesses", "--prefetch last-token or off; --read-workers"},
	Upload:       {"upload", "experts were being copied from the host's memory to the device", "--expert-memory, so that more stay on the device"},
	Network:      {"network", "asks were on their way to expert hosts, or the answers back", "a network with shorter round trips; --expert-memory here, so that less is asked"},
	HostWait:     {"host_wait", "expert hosts had other asks to answer first", "more expert hosts, or fewer engines that ask them"},
	HostDisk:     {"host_disk", "expert hosts read experts from their disks", "--expert-memory of the hosts, or more hosts, until together they hold all experts"},
	HostCompute:  {"host_compute", "expert hosts computed", "--threads of the hosts, or more hosts"},
	Room:         {"room", "experts found no slot, or had to leave before the next token needed them again", "--expert-memory"},
	Credit:       {"credit", "the next layer or wave had no place in the ring", "--ring-depth"},
	Stage:        {"stage", "a stage handled a message", ""},
	Mailbox:      {"mailbox", "messages waited until a stage took them", "fewer other programs on these processors; --threads one less than there are cores"},
	DeviceStart:  {"device_start", "the idle device had not begun what it was given", "fewer other programs on these processors; --threads one less than there are cores"},
	OtherRequest: {"other_request", "work for other requests went first", "fewer requests at once (--max-sequences), or a smaller --chunk-rows for prompts"},
	Company:      {"lingering", "the step was held back for sequences that might join it", ""},
	Memory:       {"memory", "it waited for memory for its state", "--state-memory, or --ctx with fewer positions"},
	Caller:       {"caller", "nobody had asked for it yet", "a caller that asks sooner: sampling, printing or the network took this long"},
	Unexplained:  {"unexplained", "the records do not say", ""},
}

func (c Cause) String() string { return causes[c].name }

// MarshalText returns the cause's name.
func (c Cause) MarshalText() ([]byte, error) { return []byte(causes[c].name), nil }

// Words says what happened, as the end of a sentence about a token.
func (c Cause) Words() string { return causes[c].words }

// Advice says which settings change it, by the names of their flags; empty if none does.
func (c Cause) Advice() string { return causes[c].advice }

// CauseTable returns the causes as a table in Markdown, in lines.
func CauseTable() []string {
	lines := []string{"| cause | what happened | what helps |", "| --- | --- | --- |"}
	for c := range Cause(NumCauses) {
		lines = append(lines, fmt.Sprintf("| `%s` | %s | %s |", c, c.Words(), cmp.Or(c.Advice(), "–")))
	}
	return lines
}
