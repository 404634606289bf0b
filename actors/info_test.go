package actors_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/internal/testenv"
)

// TestInfoInLog logs an engine: one line names the model and how it runs, and not the pointers of
// an Engine.
func TestInfoInLog(t *testing.T) {
	dir := fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0)
	for _, mode := range []actors.ExpertIO{actors.ExpertIOMmap, actors.ExpertIOBuffered} {
		e := open(t, actors.Config{Model: dir + string(filepath.Separator), ExpertIO: mode})
		if got, want := e.Info().Name, filepath.Base(dir); got != want || e.Info().Arch != e.Model().Arch {
			t.Errorf("the model is called %q, of %q, want %q", got, e.Info().Arch, want)
		}
		var log testenv.Log
		log.Logger().Info("opened", "engine", e)
		text := log.String()
		for _, want := range []string{"engine.model=" + filepath.Base(dir), "engine.arch=qwen3_5_moe", "engine.device=", "engine.expert_io=" + string(mode), "engine.context="} {
			if !strings.Contains(text, want) {
				t.Errorf("the log has no %q: %s", want, text)
			}
		}
		if slots := strings.Contains(text, "engine.slots="); slots != (mode == actors.ExpertIOBuffered) || strings.Contains(text, "0x") {
			t.Errorf("with %s experts: %s", mode, text)
		}
	}
}
