package gpu

import (
	"math"
	"slices"
	"testing"
)

// kvDamages are those of the segments of AppendKV and Attention, which have two: rows 0–2 at 5, row
// 3 at 8.
func kvDamages[T any](cache func(o *T) *KVLayout, segs func(o *T) []KVSegment) []bad[T] {
	second := func(o *T) *KVSegment { return &segs(o)[1] }
	return join(
		size("segment rows", func(o *T) *int { return &second(o).Rows }),
		size("page rows", func(o *T) *int { return &cache(o).PageRows }),
		size("cache dim", func(o *T) *int { return &cache(o).Dim }),
		pageView("page", func(o *T) *Pages { return &second(o).Pages }, 2),
		[]bad[T]{
			{"row negative", func(o *T) { second(o).Row = -1 }, "segment 1: row -1"},
			{"row outside", func(o *T) { second(o).Row = 4 }, "do not fit"},
			{"row huge", func(o *T) { second(o).Row = math.MaxInt }, "do not fit"},
			{"position negative", func(o *T) { second(o).Pos = -1 }, "position -1"},
			{"position beyond the table", func(o *T) { second(o).Pos = 12 }, "3 pages of 4 rows are too few for the positions 12 to 12"},
			{"position huge", func(o *T) { second(o).Pos = math.MaxInt }, "too few"},
			{"short table", func(o *T) { second(o).Pages = second(o).Pages.First(2) }, "too few"},
			{"same rows", func(o *T) { second(o).Row = 2 }, "overlap rows 0 to 2 of segment 0"},
			{"rows around", func(o *T) { segs(o)[0].Row = 1; second(o).Row = 0; second(o).Rows = 2 }, "overlap"},
			{"key offset", func(o *T) { cache(o).KOffset = 2 }, "multiples of 4"},
			{"value offset", func(o *T) { cache(o).VOffset = -4 }, "multiples of 4"},
			{"value offset outside", func(o *T) { cache(o).VOffset += 4 }, "do not fit"},
			{"values wider than keys", func(o *T) { cache(o).VDim = 7 }, "6 channels and 7 of values"},
		})
}

func kvSegments() (KVLayout, []KVSegment) {
	a, b := pages(2, 4, 6), pages(3, 4, 6)
	return a.KVLayout, []KVSegment{{Row: 0, Rows: 3, Pos: 5, Pages: a.Pages}, {Row: 3, Rows: 1, Pos: 8, Pages: b.Pages}}
}

// int8Segments are kvSegments with 8 bits, in groups of three channels.
func int8Segments() (KVLayout, []KVSegment) {
	kv, segs := kvSegments()
	kv.Format, kv.Group = KVInt8, 3
	kv.VOffset = kv.PartBytes()
	for i := range segs {
		segs[i].Pages = rooms(segs[i].Pages.Len(), 2*kv.PartBytes())
	}
	return kv, segs
}

// keysOnly are kvSegments of a cache whose values are part of its keys.
func keysOnly() (KVLayout, []KVSegment) {
	kv, segs := kvSegments()
	kv.VOffset = kv.KOffset
	for i := range segs {
		segs[i].Pages = rooms(segs[i].Pages.Len(), 4*4*6)
	}
	return kv, segs
}

func TestCheckInt8Cache(t *testing.T) {
	cache, segments := int8Segments()
	some := func() []KVSegment { return slices.Clone(segments) }
	check(t, func() AppendKV {
		return AppendKV{K: floats(24), V: floats(24), Cache: cache, Segments: some()}
	}, join(
		kvDamages(func(o *AppendKV) *KVLayout { return &o.Cache }, func(o *AppendKV) []KVSegment { return o.Segments }),
		[]bad[AppendKV]{
			{"no groups", func(o *AppendKV) { o.Cache.Group = 0 }, "groups of 0"},
			{"groups of less than none", func(o *AppendKV) { o.Cache.Group = -3 }, "groups of -3"},
			{"groups that do not divide", func(o *AppendKV) { o.Cache.Group = 4 }, "groups of 4 channels do not divide the cache's 6"},
			{"no such format", func(o *AppendKV) { o.Cache.Format = 2 }, "kv(2)"},
			{"float32 in groups", func(o *AppendKV) { o.Cache.Format = KVF32 }, "groups of 3 channels, want 0"},
			{"keys over values", func(o *AppendKV) { o.Cache.VOffset -= 4 }, "overlap"},
		}))
	check(t, func() Attention {
		return Attention{Q: floats(48), Y: floats(48), QRowStride: 12, QHeadStride: 3, Heads: 4, KVHeads: 2, HeadDim: 3, Scale: 1, Cache: cache, Segments: some()}
	}, join(
		kvDamages(func(o *Attention) *KVLayout { return &o.Cache }, func(o *Attention) []KVSegment { return o.Segments }),
		[]bad[Attention]{
			{"sinks of other heads", func(o *Attention) { o.Sinks = floats(3) }, "Sinks"},
			{"sinks over the output", func(o *Attention) { o.Sinks = o.Y }, "Sinks and Y overlap"},
			{"groups over heads", func(o *Attention) { o.Cache.Group = 6 }, "do not divide HeadDim 3"},
			{"groups over values", func(o *Attention) {
				o.KVHeads, o.HeadDim, o.QHeadStride, o.QRowStride, o.ValueDim = 1, 6, 3, 12, 4
				o.Heads = 1
			}, "do not divide ValueDim 4"},
		}))
	check(t, func() LatentAttention {
		return LatentAttention{Q: floats(4 * 2 * 36), Y: floats(4 * 2 * 3), QRowStride: 72, QHeadStride: 36, Keys: matrix(2*36, 3, f32),
			Values: matrix(2*36, 3, f32), KeyRows: 36, ValueRows: 36, FirstValue: 33, Heads: 2, Rank: 3, Nope: 33, Rope: 3, ValueDim: 3, Scale: 1,
			Cache: cache, Segments: some()}
	}, []bad[LatentAttention]{
		{"groups over the latent", func(o *LatentAttention) { o.Cache.Group = 2 }, "do not divide Rank 3"},
	})
}

func TestCheckCache(t *testing.T) {
	cache, segments := kvSegments()
	some := func() []KVSegment { return slices.Clone(segments) }
	check(t, func() AppendKV {
		return AppendKV{K: floats(3*7 + 6), V: floats(24), KStride: 7, Cache: cache, Segments: some()}
	}, join(
		view("K", 4, func(o *AppendKV) *View { return &o.K }),
		view("V", 4, func(o *AppendKV) *View { return &o.V }),
		kvDamages(func(o *AppendKV) *KVLayout { return &o.Cache }, func(o *AppendKV) []KVSegment { return o.Segments }),
		[]bad[AppendKV]{
			{"no segments", func(o *AppendKV) { o.Segments = nil }, "want at least"},
			{"K stride", func(o *AppendKV) { o.KStride = 5 }, "stride 5"},
			{"V stride", func(o *AppendKV) { o.VStride = 5 }, "stride 5"},
			{"keys over values", func(o *AppendKV) { o.Cache.VOffset = 92 }, "overlap"},
		}))
	attention := func() Attention {
		return Attention{Q: floats(3*40 + 3*9 + 3), Y: floats(4 * 12), QRowStride: 40, QHeadStride: 9, Heads: 4, KVHeads: 2,
			HeadDim: 3, Scale: 1, Cache: cache, Segments: some()}
	}
	check(t, attention, join(
		view("Q", 4, func(o *Attention) *View { return &o.Q }),
		view("Y", 4, func(o *Attention) *View { return &o.Y }),
		pageView("first page", func(o *Attention) *Pages { return &o.Segments[1].Pages }, 0),
		size("Heads", func(o *Attention) *int { return &o.Heads }),
		size("KVHeads", func(o *Attention) *int { return &o.KVHeads }),
		size("HeadDim", func(o *Attention) *int { return &o.HeadDim }),
		kvDamages(func(o *Attention) *KVLayout { return &o.Cache }, func(o *Attention) []KVSegment { return o.Segments }),
		[]bad[Attention]{
			{"no segments", func(o *Attention) { o.Segments = nil }, "want at least"},
			{"heads do not divide", func(o *Attention) { o.Heads = 3 }, "does not divide"},
			{"head stride", func(o *Attention) { o.QHeadStride = 2 }, "head stride 2"},
			{"row stride", func(o *Attention) { o.QRowStride = 29 }, "stride 29"},
			{"cache of other heads", func(o *Attention) { o.KVHeads = 1 }, "want KVHeads·HeadDim = 3"},
			same("in place", func(o *Attention) { o.Y = o.Q }),
		}))
}

func TestCheckChosen(t *testing.T) {
	cache, segments := keysOnly()
	some := func() []KVSegment { return slices.Clone(segments) }
	check(t, func() Choose {
		return Choose{Q: floats(4 * 2 * 6), Weights: floats(8), Chosen: floats(20), Heads: 2, Dim: 6, K: 5, Scale: 1, Cache: cache, Segments: some()}
	}, []bad[Choose]{
		{"Q", func(o *Choose) { o.Q = floats(47) }, "Q: 192 bytes"},
		{"Weights", func(o *Choose) { o.Weights = View{} }, "Weights has no buffer"},
		{"Chosen", func(o *Choose) { o.Chosen = floats(19) }, "Chosen: 80 bytes"},
		{"none", func(o *Choose) { o.K = 0 }, "K is 0"},
		{"Heads", func(o *Choose) { o.Heads = 0 }, "Heads is 0"},
		{"Dim", func(o *Choose) { o.Dim = -1 }, "Dim is -1"},
		{"cache of another width", func(o *Choose) { o.Dim = 5 }, "the cache has 6 channels, want Dim = 5"},
		{"no segments", func(o *Choose) { o.Segments = nil }, "Segments is 0"},
		{"short table", func(o *Choose) { o.Segments[1].Pages = o.Segments[1].Pages.First(2) }, "too few"},
		same("in place", func(o *Choose) { o.Chosen = o.Q }),
		same("over the weights", func(o *Choose) { o.K, o.Chosen = 2, o.Weights }),
		{"local positions", func(o *Choose) { o.Local = 1 }, "the last 1 of blocks of 0"},
	})
	check(t, func() Choose {
		return Choose{Q: floats(4 * 2 * 6), Chosen: floats(4 * 2 * 5), Heads: 2, Dim: 6, K: 5, Block: 3, Local: 1, Scale: 1, Cache: cache, Segments: some()}
	}, []bad[Choose]{
		{"Chosen", func(o *Choose) { o.Chosen = floats(39) }, "Chosen: 160 bytes"},
		{"Weights", func(o *Choose) { o.Weights = floats(8) }, "Weights with blocks"},
		{"negative", func(o *Choose) { o.Block = -1 }, "blocks of -1"},
		{"none local", func(o *Choose) { o.Local = 0 }, "the last 0 of blocks of 3"},
		{"too many local", func(o *Choose) { o.Local = 6 }, "want 1 to K = 5"},
	})
	check(t, func() Attention {
		return Attention{Q: floats(4 * 12), Y: floats(4 * 2 * 4), QRowStride: 12, QHeadStride: 6, Heads: 2, KVHeads: 1, HeadDim: 6, ValueDim: 4,
			Scale: 1, Cache: cache, Segments: some(), Chosen: floats(20), Budget: 5}
	}, []bad[Attention]{
		{"no budget", func(o *Attention) { o.Budget = 0 }, "Budget is 0"},
		{"budget alone", func(o *Attention) { o.Chosen = View{} }, "Budget is 5 and Block 0 without Chosen"},
		{"too few", func(o *Attention) { o.Chosen = floats(19) }, "Chosen: 80 bytes"},
		{"two heads", func(o *Attention) { o.KVHeads, o.HeadDim, o.ValueDim = 2, 3, 0 }, "Chosen: 160 bytes"},
		{"block", func(o *Attention) { o.Block = -2 }, "Block is -2"},
		{"block alone", func(o *Attention) { o.Chosen, o.Budget, o.Block = View{}, 0, 2 }, "Block 2 without Chosen"},
		same("over the output", func(o *Attention) { o.Chosen, o.Budget = o.Y, 2 }),
	})
}

// stateDamages are those of the segments of CausalConv and DeltaRule, which have two: rows 0–2 and
// row 3.
func stateDamages[T any](at func(o *T) *int, segs func(o *T) []StateSegment) []bad[T] {
	return join(
		size("segment rows", func(o *T) *int { return &segs(o)[1].Rows }),
		view("state", 4, func(o *T) *View { return &segs(o)[1].State }),
		[]bad[T]{
			{"row negative", func(o *T) { segs(o)[1].Row = -1 }, "segment 1: row -1"},
			{"row outside", func(o *T) { segs(o)[1].Row = 4 }, "do not fit"},
			{"row huge", func(o *T) { segs(o)[1].Row = math.MaxInt }, "do not fit"},
			{"same rows", func(o *T) { segs(o)[1].Row = 0 }, "overlap rows 0 to 2 of segment 0"},
			{"part beyond the state", func(o *T) { *at(o) = 4 }, "do not fit"},
			{"part before the state", func(o *T) { *at(o) = -4 }, "StateAt is -4"},
			{"part amid a number", func(o *T) { *at(o) = 2 }, "segment 0: State"},
			{"same state", func(o *T) { segs(o)[1].State = segs(o)[0].State }, "shares its state with segment 0"},
		})
}

func TestCheckRecurrent(t *testing.T) {
	check(t, func() CausalConv {
		return CausalConv{X: floats(20), W: floats(20), Y: floats(20), Channels: 5, Kernel: 4,
			Segments: []StateSegment{{0, 3, floats(15)}, {3, 1, floats(15)}}}
	}, join(
		view("X", 4, func(o *CausalConv) *View { return &o.X }),
		view("W", 4, func(o *CausalConv) *View { return &o.W }),
		view("Y", 4, func(o *CausalConv) *View { return &o.Y }),
		size("Channels", func(o *CausalConv) *int { return &o.Channels }),
		size("Kernel", func(o *CausalConv) *int { return &o.Kernel }),
		stateDamages(func(o *CausalConv) *int { return &o.StateAt }, func(o *CausalConv) []StateSegment { return o.Segments }),
		[]bad[CausalConv]{
			{"no segments", func(o *CausalConv) { o.Segments = nil }, "want at least"},
			same("in place", func(o *CausalConv) { o.Y = o.X }),
			same("W is Y", func(o *CausalConv) { o.W = o.Y }),
		}))
	one := CausalConv{X: floats(5), W: floats(5), Y: floats(5), Channels: 5, Kernel: 1, Segments: []StateSegment{{0, 1, View{}}}}
	if err := one.Check(); err != nil {
		t.Errorf("causalconv of one tap without a state: %v", err)
	}
	one.Segments = append(one.Segments, one.Segments[0])
	if one.Check() == nil {
		t.Error("causalconv of one tap with a row in two segments passed")
	}
	check(t, func() DeltaRule {
		return DeltaRule{QKV: floats(4 * (2*2*3 + 4*5)), Alpha: floats(16), Beta: floats(16), ALog: floats(4), DtBias: floats(4),
			Y: floats(4 * 4 * 5), KeyHeads: 2, ValueHeads: 4, KeyDim: 3, ValueDim: 5,
			Segments: []StateSegment{{0, 3, floats(60)}, {3, 1, floats(60)}}}
	}, join(
		view("QKV", 4, func(o *DeltaRule) *View { return &o.QKV }),
		view("Alpha", 4, func(o *DeltaRule) *View { return &o.Alpha }),
		view("Beta", 4, func(o *DeltaRule) *View { return &o.Beta }),
		view("ALog", 4, func(o *DeltaRule) *View { return &o.ALog }),
		view("DtBias", 4, func(o *DeltaRule) *View { return &o.DtBias }),
		view("Y", 4, func(o *DeltaRule) *View { return &o.Y }),
		size("KeyHeads", func(o *DeltaRule) *int { return &o.KeyHeads }),
		size("ValueHeads", func(o *DeltaRule) *int { return &o.ValueHeads }),
		size("KeyDim", func(o *DeltaRule) *int { return &o.KeyDim }),
		size("ValueDim", func(o *DeltaRule) *int { return &o.ValueDim }),
		stateDamages(func(o *DeltaRule) *int { return &o.StateAt }, func(o *DeltaRule) []StateSegment { return o.Segments }),
		[]bad[DeltaRule]{
			{"no segments", func(o *DeltaRule) { o.Segments = nil }, "want at least"},
			{"heads do not divide", func(o *DeltaRule) { o.KeyHeads = 3 }, "does not divide"},
			same("QKV is Y", func(o *DeltaRule) { o.Y = o.QKV }),
			same("Alpha in Y", func(o *DeltaRule) { o.Alpha = o.Y }),
			same("Beta in Y", func(o *DeltaRule) { o.Beta = o.Y }),
			same("ALog in Y", func(o *DeltaRule) { o.ALog = o.Y }),
			same("DtBias in Y", func(o *DeltaRule) { o.DtBias = o.Y }),
		}))
}

func TestCheckLatent(t *testing.T) {
	cache, segments := keysOnly()
	some := func() []KVSegment { return slices.Clone(segments) }
	if err := (&AppendKV{K: floats(24), Cache: cache, Segments: some()}).Check(); err != nil {
		t.Errorf("appendkv of keys alone: %v", err)
	}
	shared := func() Attention {
		return Attention{Q: floats(4 * 12), Y: floats(4 * 2 * 5), QRowStride: 12, QHeadStride: 6, Heads: 2, KVHeads: 1, HeadDim: 6, ValueDim: 5,
			Scale: 1, Cache: cache, Segments: some()}
	}
	check(t, shared, join(
		view("Y", 4, func(o *Attention) *View { return &o.Y }),
		[]bad[Attention]{
			{"value dim", func(o *Attention) { o.ValueDim = 7 }, "ValueDim 7"},
			{"value dim negative", func(o *Attention) { o.ValueDim = -1 }, "ValueDim -1"},
			{"narrow values", func(o *Attention) { o.Cache.VDim = 4 }, "want 5"},
			{"a window below 0", func(o *Attention) { o.Window = -1 }, "window of -1"},
			{"a window of chosen positions", func(o *Attention) { o.Window, o.Budget = 4, 2 }, "2 chosen ones"},
		}))
	check(t, func() LatentAttention {
		return LatentAttention{Q: floats(4 * 2 * 35), Y: floats(4 * 2 * 3), QRowStride: 70, QHeadStride: 35, Keys: matrix(2*36, 4, f32),
			Values: matrix(2*36, 4, f32), KeyRows: 36, ValueRows: 36, FirstValue: 33, Heads: 2, Rank: 4, Nope: 33, Rope: 2, ValueDim: 3, Scale: 1,
			Cache: cache, Segments: some()}
	}, join(
		view("Q", 4, func(o *LatentAttention) *View { return &o.Q }),
		view("Y", 4, func(o *LatentAttention) *View { return &o.Y }),
		view("Keys", 4, func(o *LatentAttention) *View { return &o.Keys.Weight }),
		view("Values", 4, func(o *LatentAttention) *View { return &o.Values.Weight }),
		size("Heads", func(o *LatentAttention) *int { return &o.Heads }),
		size("Rank", func(o *LatentAttention) *int { return &o.Rank }),
		size("Nope", func(o *LatentAttention) *int { return &o.Nope }),
		size("Rope", func(o *LatentAttention) *int { return &o.Rope }),
		size("ValueDim", func(o *LatentAttention) *int { return &o.ValueDim }),
		[]bad[LatentAttention]{
			{"no segments", func(o *LatentAttention) { o.Segments = nil }, "want at least"},
			{"keys the other way round", func(o *LatentAttention) { o.KeysTransposed = true }, "want 33 and 4"},
			{"first value", func(o *LatentAttention) { o.FirstValue = 34 }, "from row 34 on"},
			{"key rows", func(o *LatentAttention) { o.KeyRows = 32 }, "heads of 32"},
			{"other cache", func(o *LatentAttention) { o.Rope, o.QHeadStride = 1, 34 }, "want Rank+Rope = 5"},
			same("in place", func(o *LatentAttention) { o.Y = o.Q }),
		}))
}
