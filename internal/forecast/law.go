package forecast

import (
	"slices"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/cachesim"
	"github.com/moeflux/moeflux-actor/io/synth"
)

// warmTokens is the length of the chain that the forecast of a synthetic model looks at; its second
// half counts.
const warmTokens = 512

// byLaw simulates the routing law of a synthetic model.
func byLaw(i *actors.Info, t Text) (Kept, error) {
	m, err := synth.Load(t.Config.Model)
	if err != nil {
		return Kept{}, err
	}
	from := "by the model's own law, in slots that lose the least recently used"
	tokens := m.Chain(warmTokens)
	prompt, chunk := warmTokens/2, 1
	if t.Cold {
		from += ", from empty slots"
		tokens = m.Chain(t.From + t.Prompt + t.Gen)[t.From:]
		prompt, chunk = t.Prompt, max(1, t.Chunk)
	}
	visits, first := lawVisits(m, tokens, prompt, chunk, i)
	misses, err := cachesim.LRU(visits, i.Slots)
	if err != nil {
		return Kept{}, err
	}
	uses := 0
	for _, v := range visits[first:] {
		uses += len(v)
	}
	if uses == 0 {
		return Kept{}, nil
	}
	return Kept{1 - float64(misses.Sum(first))/float64(uses), from}, nil
}

// lawVisits returns the experts that the tokens use, and the first visit after the prompt.
func lawVisits(m *synth.Model, tokens []int32, prompt, chunk int, i *actors.Info) (visits []cachesim.Visit, first int) {
	experts := m.Config().NumExperts
	for at := 0; at < len(tokens); {
		rows := 1
		if at < prompt {
			rows = min(chunk, prompt-at)
		} else if at == prompt {
			first = len(visits)
		}
		var picks [][]int32 // [layers with experts]
		for _, token := range tokens[at : at+rows] {
			for layer, r := range m.Routing(token) {
				if layer == len(picks) {
					picks = append(picks, nil)
				}
				picks[layer] = append(picks[layer], r.Experts[:min(i.TopK, len(r.Experts))]...)
			}
		}
		for layer, p := range picks {
			visits = AppendVisits(visits, layer*experts, p, i)
		}
		at += rows
	}
	return visits, first
}

// AppendVisits adds the visits of one layer: each expert of picks once, all together if the slots
// suffice, else in waves. firstKey is the key of the layer's expert 0.
func AppendVisits(visits []cachesim.Visit, firstKey int, picks []int32, i *actors.Info) []cachesim.Visit {
	union := slices.Clone(picks)
	slices.Sort(union)
	union = slices.Compact(union)
	for k := range union {
		union[k] += int32(firstKey)
	}
	if len(union) <= i.Slots {
		return append(visits, union)
	}
	for part := range slices.Chunk(union, max(1, i.WaveSlots)) {
		visits = append(visits, part)
	}
	return visits
}
