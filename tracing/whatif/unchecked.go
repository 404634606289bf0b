package whatif

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/moeflux/moeflux-actor/tracing/record"
)

// What predictions have been compared with: the speed of decoding by engines on the host device
// with direct reads, as internal/whatifcheck measures it. docs/experiments.md has the figures.
const (
	checkedLayers = 5
	checkedTexts  = 1
	checkedPrompt = 8 // rows
	checkedDepth  = 2
)

// unchecked names what a recording or settings have that predictions have not been compared with an
// engine for.
func unchecked(rec *record.Recording, s *Settings) (all []string) {
	add := func(is bool, format string, args ...any) {
		if is {
			all = append(all, fmt.Sprintf(format, args...))
		}
	}
	m := &rec.Meta
	device, reads := m.Machine.Device, m.Settings["expert-io"]
	prompt, texts := crowd(rec)
	add(device != "" && !strings.HasPrefix(device, "host"), "the device %s", device)
	add(len(m.Engine.Borders) > 0, "several devices: their work is simulated as if it were one device's")
	add(reads != "" && reads != "direct", "--expert-io %s: how long a read takes depends on what the system keeps in memory", reads)
	add(texts > checkedTexts, "%d texts at once: a read that ends a moment later can change which of them share a step", texts)
	add(prompt > checkedPrompt, "a prompt of %d tokens: the speed of prompts, and what they do to texts beside them", prompt)
	add(m.Model.Layers > checkedLayers, "a model with %d layers", m.Model.Layers)
	add(s.RingDepth > checkedDepth, "--ring-depth %d", s.RingDepth)
	add(s.ChunkRows > 0, "--chunk-rows")
	add(s.DiskRate > 0, "--disk")
	add(s.Policy != "", "--policy")
	return all
}

// crowd returns how long the longest prompt was and how many requests of different texts were under
// way at once, since experts were forgotten last.
func crowd(rec *record.Recording) (prompt int32, texts int) {
	since := begins(rec)
	requests := slices.Clone(rec.Requests)
	slices.SortFunc(requests, func(a, b record.Request) int { return cmp.Compare(a.ArrivedNS, b.ArrivedNS) })
	var under []record.Request // way when the next one came
	for _, q := range requests {
		if q.ArrivedNS < since {
			continue
		}
		prompt = max(prompt, q.Rows)
		under = slices.DeleteFunc(under, func(o record.Request) bool { return o.EndedNS <= q.ArrivedNS || o.Seq == q.Seq })
		under = append(under, q)
		texts = max(texts, len(under))
	}
	return prompt, texts
}
