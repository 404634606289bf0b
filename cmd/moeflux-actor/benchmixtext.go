package main

import (
	"fmt"
	"strings"

	"github.com/moeflux/moeflux-actor/internal/bench"
)

// mixText formats the result.
func mixText(r *bench.MixResult) string {
	var b strings.Builder
	settingText(&b, &r.Setting)
	figureLine(&b, "mixed", "one text decodes while another reads a prompt of %d %s tokens; %s for each share; %s",
		r.PromptTokens, r.Prompts, counted(int64(r.Repeat), "run"), r.State)
	if r.Interrupted {
		figureLine(&b, "interrupted", "some runs are missing")
	}
	b.WriteByte('\n')
	columns := []column{{"share", 6}, {"gap alone", 11}, {"gap", 11}, {"99 %", 11}, {"most", 11}, {"steps", 7}, {"prompt/s", 10}, {"alone/s", 10}, {"speed", 7}}
	var heads []string
	for _, c := range columns {
		heads = append(heads, c.name)
	}
	tableRow(&b, columns, heads)
	for _, p := range r.Points {
		tableRow(&b, columns, []string{
			fmt.Sprintf("%.2f", p.Share), milliseconds(p.GapAlone), milliseconds(p.Gap), milliseconds(p.Gap99), milliseconds(p.GapMost), fmt.Sprintf("%.1f", p.Steps99),
			fmt.Sprintf("%.1f", p.Prompt.Median), fmt.Sprintf("%.1f", p.PromptAlone.Median), fmt.Sprintf("%.0f%%", 100*p.PromptShare),
		})
	}
	return b.String()
}

func milliseconds(ms float64) string { return fmt.Sprintf("%.2f ms", ms) }
