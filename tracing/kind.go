package tracing

import "github.com/moeflux/moeflux-actor/stages"

// Kind says what message a stage handled. KindOther is that of messages about no step, and of
// messages that only one package knows.
type Kind = stages.Kind

// KindMatched is not a message: expert-IO gave uses of a step their slots, whatever it handled.
const KindMatched = stages.NumKinds
