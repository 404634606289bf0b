package launch

import "github.com/moeflux/moeflux-actor/gpu"

type appendRow struct {
	k, v                   uint64
	row, slot, pageRows, _ uint32
}

type appendParams struct{ n, dim, kStride, vStride, group uint32 }

// appendSimdgroups is how many groups of channels a threadgroup rounds to 8 bits.
const appendSimdgroups = 8

// appendRows lists where the rows of all segments go in the cache, in order.
func (x *encoder) appendRows(o *gpu.AppendKV) []appendRow {
	l := &x.lists
	l.appends = l.appends[:0]
	kv := &o.Cache
	for i := range o.Segments {
		s := &o.Segments[i]
		for r := range s.Rows {
			pos := s.Pos + r
			a := address(s.Pages.At(pos / kv.PageRows))
			l.appends = append(l.appends, appendRow{k: a + uint64(kv.KOffset), v: a + uint64(kv.VOffset), row: uint32(s.Row + r),
				slot: uint32(pos % kv.PageRows), pageRows: uint32(kv.PageRows)})
		}
	}
	return l.appends
}

// appendKV writes keys and values in one launch if they have as many channels, else in two: values
// then take the place of keys.
func (x *encoder) appendKV(o *gpu.AppendKV) {
	kv, rows := &o.Cache, x.appendRows(o)
	if kv.VDim == 0 {
		x.appendPart(o, rows, appended{kv: *kv, k: o.K, v: o.V, kStride: o.KStride, vStride: o.VStride})
		return
	}
	x.appendPart(o, rows, appended{kv: *kv, k: o.K, kStride: o.KStride})
	if o.V.IsZero() {
		return
	}
	for i := range rows {
		rows[i].k = rows[i].v
	}
	x.appendPart(o, rows, appended{kv: kv.Values(), k: o.V, kStride: o.VStride})
}

// appended is what a launch writes to the cache: rows of k and, if there are any, of v, with as
// many channels.
type appended struct {
	kv               gpu.KVLayout // its Dim is the channels
	k, v             gpu.View
	kStride, vStride int // float32s; 0: the channels
}

// appendPart encodes a launch that writes to the cache.
func (x *encoder) appendPart(o *gpu.AppendKV, rows []appendRow, w appended) {
	dim, values := w.kv.Dim, flag(!w.v.IsZero())
	name, n, group := "append_kv", len(rows)*dim, 0
	if w.kv.Format == gpu.KVInt8 {
		name, n, group = "append_kv8", len(rows)*(1+values)*w.kv.Groups(), w.kv.Group
	}
	x.begin(o, name, values)
	x.views(w.k, w.v)
	x.tableAt(table(x, rows))
	constants(x, appendParams{uint32(n), uint32(dim), uint32(or(w.kStride, dim)), uint32(or(w.vStride, dim)), uint32(group)})
	if group > 0 {
		x.end(32*appendSimdgroups, ceil(n, appendSimdgroups))
		return
	}
	x.elements(n)
}
