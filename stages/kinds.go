package stages

import (
	"fmt"
	"strings"
)

// Kind says which type a message has.
type Kind uint8

// The kinds, one for each type of message. KindOther is that of messages which other packages
// declare.
const (
	KindOther Kind = iota
	KindEvalChunk
	KindChunkEvaluated
	KindCancelEval
	KindWithdraw
	KindForgetSequence
	KindCollectStats
	KindResizeSlots
	KindSlotsResized
	KindForgetExperts
	KindExpertsForgotten
	KindDescribePredictions
	KindPredictionsDescribed
	KindWarmSlots
	KindDrain
	KindDrained
	KindLingerOver
	KindStintOver
	KindOpenSequence
	KindResetSequence
	KindCloseSequence
	KindTruncateSequence
	KindKeepCheckpoint
	KindRestoreCheckpoint
	KindForgetCheckpoint
	KindCapCheckpoints
	KindResumeSequence
	KindForgetTexts
	KindDescribeSequence
	KindSequenceDone
	KindFreezeSequence
	KindFreezeText
	KindDraftState
	KindStateReady
	KindAdoptState
	KindReleaseState
	KindCopyState
	KindStateCopied
	KindDropState
	KindParkSequence
	KindStateParked
	KindStateReturned
	KindBeginLayer
	KindPrefetchExperts
	KindPicksReady
	KindScoresAhead
	KindLayerRouted
	KindExpertsRead
	KindReadOverdue
	KindExpertsAnswered
	KindAskOverdue
	KindHostChanged
	KindWaveResident
	KindWaveSubmitted
	KindLayerSubmitted
	KindTicketDone
	KindSlotsReleased
	KindLayerRetired
	KindStepRouted
	KindCountPicks
	KindExpertsUsed
	KindMoveExperts
	KindSlotsVacated
	KindReadLogits
	KindLogitsReady
	KindStepFailed
	KindDrainStep
	KindStepDrained
	NumKinds
)

// blanks has a nil pointer of each type of message.
var blanks = [NumKinds]Message{
	KindEvalChunk:            (*EvalChunk)(nil),
	KindChunkEvaluated:       (*ChunkEvaluated)(nil),
	KindCancelEval:           (*CancelEval)(nil),
	KindWithdraw:             (*Withdraw)(nil),
	KindForgetSequence:       (*ForgetSequence)(nil),
	KindCollectStats:         (*CollectStats)(nil),
	KindResizeSlots:          (*ResizeSlots)(nil),
	KindSlotsResized:         (*SlotsResized)(nil),
	KindForgetExperts:        (*ForgetExperts)(nil),
	KindExpertsForgotten:     (*ExpertsForgotten)(nil),
	KindDescribePredictions:  (*DescribePredictions)(nil),
	KindPredictionsDescribed: (*PredictionsDescribed)(nil),
	KindWarmSlots:            (*WarmSlots)(nil),
	KindDrain:                (*Drain)(nil),
	KindDrained:              (*Drained)(nil),
	KindLingerOver:           (*LingerOver)(nil),
	KindStintOver:            (*StintOver)(nil),
	KindOpenSequence:         (*OpenSequence)(nil),
	KindResetSequence:        (*ResetSequence)(nil),
	KindCloseSequence:        (*CloseSequence)(nil),
	KindTruncateSequence:     (*TruncateSequence)(nil),
	KindKeepCheckpoint:       (*KeepCheckpoint)(nil),
	KindRestoreCheckpoint:    (*RestoreCheckpoint)(nil),
	KindForgetCheckpoint:     (*ForgetCheckpoint)(nil),
	KindCapCheckpoints:       (*CapCheckpoints)(nil),
	KindResumeSequence:       (*ResumeSequence)(nil),
	KindForgetTexts:          (*ForgetTexts)(nil),
	KindDescribeSequence:     (*DescribeSequence)(nil),
	KindSequenceDone:         (*SequenceDone)(nil),
	KindFreezeSequence:       (*FreezeSequence)(nil),
	KindFreezeText:           (*FreezeText)(nil),
	KindDraftState:           (*DraftState)(nil),
	KindStateReady:           (*StateReady)(nil),
	KindAdoptState:           (*AdoptState)(nil),
	KindReleaseState:         (*ReleaseState)(nil),
	KindCopyState:            (*CopyState)(nil),
	KindStateCopied:          (*StateCopied)(nil),
	KindDropState:            (*DropState)(nil),
	KindParkSequence:         (*ParkSequence)(nil),
	KindStateParked:          (*StateParked)(nil),
	KindStateReturned:        (*StateReturned)(nil),
	KindBeginLayer:           (*BeginLayer)(nil),
	KindPrefetchExperts:      (*PrefetchExperts)(nil),
	KindPicksReady:           (*PicksReady)(nil),
	KindScoresAhead:          (*ScoresAhead)(nil),
	KindLayerRouted:          (*LayerRouted)(nil),
	KindExpertsRead:          (*ExpertsRead)(nil),
	KindReadOverdue:          (*ReadOverdue)(nil),
	KindExpertsAnswered:      (*ExpertsAnswered)(nil),
	KindAskOverdue:           (*AskOverdue)(nil),
	KindHostChanged:          (*HostChanged)(nil),
	KindWaveResident:         (*WaveResident)(nil),
	KindWaveSubmitted:        (*WaveSubmitted)(nil),
	KindLayerSubmitted:       (*LayerSubmitted)(nil),
	KindTicketDone:           (*TicketDone)(nil),
	KindSlotsReleased:        (*SlotsReleased)(nil),
	KindLayerRetired:         (*LayerRetired)(nil),
	KindStepRouted:           (*StepRouted)(nil),
	KindCountPicks:           (*CountPicks)(nil),
	KindExpertsUsed:          (*ExpertsUsed)(nil),
	KindMoveExperts:          (*MoveExperts)(nil),
	KindSlotsVacated:         (*SlotsVacated)(nil),
	KindReadLogits:           (*ReadLogits)(nil),
	KindLogitsReady:          (*LogitsReady)(nil),
	KindStepFailed:           (*StepFailed)(nil),
	KindDrainStep:            (*DrainStep)(nil),
	KindStepDrained:          (*StepDrained)(nil),
}

// Blanks returns a nil pointer of each type of message, for programs that go through all of them.
func Blanks() []Message { return blanks[KindOther+1:] }

var kindNames = func() (names [NumKinds]string) {
	names[KindOther] = "other"
	for k, m := range blanks {
		if m != nil {
			names[k] = strings.TrimPrefix(fmt.Sprintf("%T", m), "*stages.")
		}
	}
	return names
}()

func (k Kind) String() string {
	if k < NumKinds {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Request is a message that callers send.
type Request interface {
	Message
	// Ask prepares a request that came from outside the engine: it names the sender as Caller
	// unless the request names one, takes back what only the engine may say, and returns the stage
	// that the request is for.
	Ask(from Caller) StageID
}

// asks sets a request's caller, unless it has one, and returns the stage that the request is for.
func asks(caller *Caller, from Caller, to StageID) StageID {
	if *caller == nil {
		*caller = from
	}
	return to
}
