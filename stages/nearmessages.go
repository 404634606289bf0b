package stages

// In a resident engine whose experts do not fit into the device's own memory they all lie in the
// host's, where the device reads them over the bus. Some have a copy in a slot of the device's
// memory, too: they are near. Others are far. Which expert lies where changes no bit of a result.

// NearSets has a bit for each expert of each layer with routed experts, NearWords words a layer.
type NearSets []uint64

// NearWords returns how many words the set of a layer takes.
func NearWords(experts int) int { return (experts + 63) / 64 }

// Has reports whether an expert is near, of the layer that is the n-th with routed experts; that is
// so of all if the set is empty.
func (s NearSets) Has(n, experts int, expert int32) bool {
	return len(s) == 0 || s[n*NearWords(experts)+int(expert)/64]>>(expert%64)&1 != 0
}

// Put notes whether an expert is near.
func (s NearSets) Put(n, experts int, expert int32, near bool) {
	word, bit := &s[n*NearWords(experts)+int(expert)/64], uint64(1)<<(expert%64)
	if *word &^= bit; near {
		*word |= bit
	}
}

// ExpertsUsed tells which experts a step has used, in the order of the layers. Router to expert-IO,
// where some experts are far.
type ExpertsUsed struct {
	Outside
	Urgent bool // the step was
	Rows   int  // of the step, in each layer
	Uses   []KeyUse
}

// KeyUse is an expert that a step has used.
type KeyUse struct {
	Key  int32 // layer·Experts+expert
	Rows int32 // that picked it
}

func (*ExpertsUsed) MessageKind() Kind { return KindExpertsUsed }

func (m *ExpertsUsed) spend(s *Spent) {
	*m = ExpertsUsed{Uses: m.Uses[:0]}
	s.used.put(m)
}

// MoveExperts tells dispatch which experts have come into a slot and which are to leave theirs:
// what it submits from now on is told. Expert-IO to dispatch.
type MoveExperts struct {
	Outside
	Come  []NearExpert // the slots' bytes are the device's to read
	Leave []NearExpert // dispatch answers SlotsVacated when nothing reads the slot any more
}

// NearExpert is an expert and its slot in the device's memory.
type NearExpert struct {
	Layer, Expert int32
	Slot          SlotID
}

func (*MoveExperts) MessageKind() Kind { return KindMoveExperts }

func (m *MoveExperts) spend(s *Spent) {
	*m = MoveExperts{Come: m.Come[:0], Leave: m.Leave[:0]}
	s.moves.put(m)
}

// SlotsVacated gives the bytes of slots back whose experts were to leave. Dispatch to expert-IO.
type SlotsVacated struct {
	Outside
	Slots []SlotID
}

func (*SlotsVacated) MessageKind() Kind { return KindSlotsVacated }

func (m *SlotsVacated) spend(s *Spent) {
	*m = SlotsVacated{Slots: m.Slots[:0]}
	s.vacated.put(m)
}
