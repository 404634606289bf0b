package actors

import "github.com/moeflux/moeflux-actor/stages"

// WrapCores makes an engine opened with cfg run what wrap makes of each stage.
func WrapCores(cfg *Config, wrap func(stages.StageID, stages.Core) stages.Core) { cfg.wrapCore = wrap }
