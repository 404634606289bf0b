package figures

import "strings"

// A Term is a word or a number that the commands print, and its meaning.
type Term struct{ Name, Meaning string }

// Glossary defines the words and numbers that run, bench and doctor print, each once.
// docs/figures.md has the same text; a test compares them.
func Glossary() []Term { return glossary }

// GlossaryText lists the definitions.
func GlossaryText() string {
	var b strings.Builder
	for _, f := range glossary {
		line := "  " + f.Name + strings.Repeat(" ", max(1, 12-len(f.Name)))
		for _, word := range strings.Fields(f.Meaning) {
			if len(line)+len(word) > 76 {
				b.WriteString(strings.TrimRight(line, " ") + "\n")
				line = strings.Repeat(" ", 14)
			}
			line += word + " "
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}

var glossary = []Term{
	{"tokens/s", "Tokens a second, of all texts together: the median of the runs, then the least and the most. Prompts and decoding are measured apart."},
	{"GMAC/s", "Billions of multiply-adds of weight matrices a second. Attention over earlier positions is left out."},
	{"touched", "The weights that a token needs: all resident ones and those of the experts that it uses."},
	{"memory", "The share of the memory's bandwidth: the weights that the steps touch, once a step however many texts it serves, a second, by the most that membw read with the same threads in any of its measurements. Weights that stay in a processor's cache can lift it above 100 %."},
	{"hits", "The share of expert uses whose expert was in a slot, or on its way because of a prediction, when the router picked it. A use is one expert of one layer in one step, however many rows share it."},
	{"kept", "Hits without those on experts that were read ahead: what the slots alone had kept from earlier uses. Forecast and best cache speak of the same share."},
	{"read", "Bytes of experts that were read for any reason, in all runs of a row."},
	{"reads", "Reads of experts that ended."},
	{"ahead", "Of these reads: begun for a prediction, before the router had picked the expert."},
	{"hurried", "Of the reads ahead: moved to the front, because the router picked the expert while the read still waited for a worker."},
	{"retried", "Reads that failed once and were tried again."},
	{"failed", "Reads that failed for good."},
	{"overdue", "Reports of a read that takes longer than --read-timeout allows."},
	{"begun", "Reads ahead that began during the measurement."},
	{"used", "Experts read ahead, before the measurement or during it, that a token then used."},
	{"late", "Of these: still being read when the router picked them, so the token waited for the rest of the read."},
	{"unused", "Experts read ahead that lost their slot before any token used them, or whose read was recalled before the disk had begun it."},
	{"held", "Experts read ahead that are in memory, or on their way, and wait for their first use. It describes the end of the measurement."},
	{"dropped", "Predictions that were not read because no slot was spare, or only ones that hold likelier experts."},
	{"declined", "Predictions that were not read because they were too unlikely, or the read would have ended too late to help."},
	{"skipped", "Predictions that were not read because the layer's reading ahead was paused. It is paused for a while where it costs more than it saves."},
	{"computes", "The time of a token during which the device works."},
	{"waits", "The time of a token during which the device has nothing to do because experts that the router picked are missing."},
	{"reads for", "The time of a token during which at least one read is under way, beside computing or not."},
	{"best cache", "What the best possible cache with as many slots would have kept and read: it starts equally empty, reads only what is used, and knows the future. With what it reads and both bandwidths, a token takes at least a certain time: over all tokens together, token by token where the slower of disk and memory decides for each, and layer by layer where no read begins before its layer."},
	{"tuned", "Settings that tune chose for this model on this machine by paired runs, and that no flag gave."},
	{"forecast", "The speed of one text. At best memory and disk work side by side and the slower decides. At worst a token first reads and then computes, at 55 % of the memory's bandwidth. The bandwidths are those of the same command's own measurements."},
	{"with hosts", "The same with experts on several machines. Each layer waits for the slowest of them: a round trip, the bytes there and back, and the computing. At best all are at work at once; at worst the network carries nothing while the slowest computes, and an ask takes what it was measured to take beyond that."},
}
