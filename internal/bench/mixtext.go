package bench

import (
	"fmt"
	"strings"

	"github.com/moeflux/moeflux-actor/internal/figures"
)

// Text formats the result for people.
func (r *MixResult) Text() string {
	var b strings.Builder
	r.Setting.text(&b)
	figures.Line(&b, "mixed", "one text decodes while another reads a prompt of %d %s tokens; %s for each share; %s",
		r.PromptTokens, r.Prompts, figures.Counted(r.Repeat, "run"), r.State)
	if r.Interrupted {
		figures.Line(&b, "interrupted", "some runs are missing")
	}
	b.WriteByte('\n')
	table(&b, []column[*MixPoint]{
		{"share", 6, func(p *MixPoint) string { return hundredths(p.Share) }},
		{"gap alone", 11, func(p *MixPoint) string { return milliseconds(p.GapAlone) }},
		{"99 % alone", 11, func(p *MixPoint) string { return milliseconds(p.GapAlone99) }},
		{"gap", 11, func(p *MixPoint) string { return milliseconds(p.Gap) }},
		{"99 %", 11, func(p *MixPoint) string { return milliseconds(p.Gap99) }},
		{"most", 11, func(p *MixPoint) string { return milliseconds(p.GapMost) }},
		{"steps", 7, func(p *MixPoint) string { return fmt.Sprintf("%.1f", p.Steps99) }},
		{"prompt/s", 10, func(p *MixPoint) string { return fmt.Sprintf("%.1f", p.Prompt.Median) }},
		{"alone/s", 10, func(p *MixPoint) string { return fmt.Sprintf("%.1f", p.PromptAlone.Median) }},
		{"speed", 7, func(p *MixPoint) string { return fmt.Sprintf("%.0f%%", 100*p.PromptShare) }},
	}, r.Points)
	return b.String()
}
