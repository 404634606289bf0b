package tracing

import (
	"fmt"

	"github.com/moeflux/moeflux-actor/stages"
)

// Kind says what message a stage handled.
type Kind uint8

// The kinds, one for each type of message about a step. KindOther is any other message.
const (
	KindOther Kind = iota
	KindBeginLayer
	KindPrefetchExperts
	KindPicksReady
	KindLayerRouted
	KindExpertsRead
	KindWaveResident
	KindWaveSubmitted
	KindLayerSubmitted
	KindTicketDone
	KindSlotsReleased
	KindLayerRetired
	KindReadLogits
	KindLogitsReady
	KindStepFailed
	KindDrainStep
	KindStepDrained
	KindStepRouted
	KindScoresAhead
	KindMatched // not a message: expert-IO gave uses of a step their slots, whatever it handled
	numKinds
)

var kindNames = [numKinds]string{
	"other", "BeginLayer", "PrefetchExperts", "PicksReady", "LayerRouted", "ExpertsRead", "WaveResident", "WaveSubmitted",
	"LayerSubmitted", "TicketDone", "SlotsReleased", "LayerRetired", "ReadLogits", "LogitsReady", "StepFailed", "DrainStep",
	"StepDrained", "StepRouted", "ScoresAhead", "Matched",
}

func (k Kind) String() string {
	if k < numKinds {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// KindOf returns the kind of a message.
func KindOf(m stages.Message) Kind {
	switch m.(type) {
	case *stages.BeginLayer:
		return KindBeginLayer
	case *stages.PrefetchExperts:
		return KindPrefetchExperts
	case *stages.PicksReady:
		return KindPicksReady
	case *stages.LayerRouted:
		return KindLayerRouted
	case *stages.ExpertsRead:
		return KindExpertsRead
	case *stages.WaveResident:
		return KindWaveResident
	case *stages.WaveSubmitted:
		return KindWaveSubmitted
	case *stages.LayerSubmitted:
		return KindLayerSubmitted
	case *stages.TicketDone:
		return KindTicketDone
	case *stages.SlotsReleased:
		return KindSlotsReleased
	case *stages.LayerRetired:
		return KindLayerRetired
	case *stages.ReadLogits:
		return KindReadLogits
	case *stages.LogitsReady:
		return KindLogitsReady
	case *stages.StepFailed:
		return KindStepFailed
	case *stages.DrainStep:
		return KindDrainStep
	case *stages.StepRouted:
		return KindStepRouted
	case *stages.ScoresAhead:
		return KindScoresAhead
	case *stages.StepDrained:
		return KindStepDrained
	default:
		return KindOther
	}
}
