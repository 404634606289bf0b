package stagetest

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/moeflux/moeflux-actor/stages"
)

// messages is every message type by its name.
var messages = func() map[string]reflect.Type {
	all := make(map[string]reflect.Type)
	for _, m := range stages.Blanks() {
		t := reflect.TypeOf(m).Elem()
		all[t.Name()] = t
	}
	return all
}()

// names are the words for values of small types, by value.
var names = map[reflect.Type][]string{
	reflect.TypeFor[stages.LogitsWanted](): {"last", "none", "all", "best"},
	reflect.TypeFor[stages.SequenceOp]():   {"opened", "reset", "closed", "truncated", "checkpointed", "restored", "forgotten", "resumed", "described", "adopted", "capped", "released", "parked"},
	reflect.TypeFor[stages.ParkOp]():       {"", "write", "read", "forget"},
	reflect.TypeFor[stages.StageID]():      {"sequencer", "router", "expert-io", "dispatch", "combine"},
}

// message makes a message of its name and fields.
func (s *scenario) message(name string, a *Args) (stages.Message, error) {
	p := reflect.New(messages[name])
	m := p.Interface().(stages.Message)
	if h := m.Head(); h != nil {
		h.ID, h.Layer = stages.StepID(a.Int("step", 0)), a.Int("layer", 0)
		h.Batch, h.SentNS = s.batches[h.ID], int64(a.Int("atus", 0))*1000
	}
	v := p.Elem()
	for i := range v.NumField() {
		f := v.Type().Field(i)
		key := strings.ToLower(f.Name)
		if _, ok := a.pairs[key]; !ok || f.Anonymous || !f.IsExported() {
			continue
		}
		if err := s.set(v.Field(i), a.String(key, "")); err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
	}
	return m, nil
}

// set parses text into a field.
func (s *scenario) set(v reflect.Value, text string) error {
	switch v.Type() {
	case reflect.TypeFor[stages.Caller]():
		v.Set(reflect.ValueOf(text))
		return nil
	case reflect.TypeFor[stages.Pos]():
		n, err := strconv.Atoi(text)
		v.Set(reflect.ValueOf(stages.At(n)))
		return err
	case reflect.TypeFor[error]():
		v.Set(reflect.ValueOf(errors.New(text)))
		return nil
	case reflect.TypeFor[stages.Ticket]():
		v.Set(reflect.ValueOf(namedTicket(text)))
		return nil
	case reflect.TypeFor[*stages.RoutePlan]():
		v.Set(reflect.ValueOf(s.plans[text]))
		return nil
	case reflect.TypeFor[*stages.Stats]():
		layers, err := strconv.Atoi(text)
		v.Set(reflect.ValueOf(&stages.Stats{Layers: make([]stages.LayerStats, layers)}))
		return err
	case reflect.TypeFor[stages.TraceContext]():
		v.Set(reflect.ValueOf(stages.TraceContext{SpanID: [8]byte{1}, Flags: 1}))
		return nil
	case reflect.TypeFor[stages.ReadResult]():
		return setResult(v.Addr().Interface().(*stages.ReadResult), text)
	case reflect.TypeFor[stages.Want]():
		return setWant(v.Addr().Interface().(*stages.Want), text)
	case reflect.TypeFor[stages.Tensor]():
		return s.setTensor(v.Addr().Interface().(*stages.Tensor), text)
	case reflect.TypeFor[stages.Loss]():
		return s.setLoss(v.Addr().Interface().(*stages.Loss), text)
	}
	for i, n := range names[v.Type()] {
		if n == text {
			v.SetUint(uint64(i))
			return nil
		}
	}
	return s.setPlain(v, text)
}

func (s *scenario) setPlain(v reflect.Value, text string) (err error) {
	switch {
	case v.Kind() == reflect.String:
		v.SetString(text)
	case v.Kind() == reflect.Bool:
		var b bool
		b, err = strconv.ParseBool(text)
		v.SetBool(b)
	case v.CanInt():
		var n int64
		n, err = strconv.ParseInt(text, 10, v.Type().Bits())
		v.SetInt(n)
	case v.CanUint():
		var n uint64
		n, err = strconv.ParseUint(text, 10, v.Type().Bits())
		v.SetUint(n)
	case v.CanFloat():
		var f float64
		f, err = strconv.ParseFloat(text, 32)
		v.SetFloat(f)
	case v.Kind() == reflect.Slice && text == "":
		v.Set(reflect.MakeSlice(v.Type(), 0, 0))
	case v.Kind() == reflect.Slice:
		parts := strings.Split(text, ",")
		v.Set(reflect.MakeSlice(v.Type(), len(parts), len(parts)))
		for i, p := range parts {
			if err := s.set(v.Index(i), p); err != nil {
				return err
			}
		}
	default:
		err = fmt.Errorf("no value of type %s can be written", v.Type())
	}
	return err
}

// setResult parses slot.gen or slot.gen!error.
func setResult(r *stages.ReadResult, text string) error {
	at, bad, failed := strings.Cut(text, "!")
	if failed {
		if r.Err = errors.New(bad); bad == "recalled" {
			r.Err = stages.ErrRecalled
		}
	}
	if _, err := fmt.Sscanf(at, "%d.%d", &r.Slot, &r.Gen); err != nil {
		return fmt.Errorf("%q is not slot.generation: %w", at, err)
	}
	return nil
}

// setWant parses quantity:layer.
func setWant(w *stages.Want, text string) error {
	name, layer, _ := strings.Cut(text, ":")
	q, ok := stages.ParseQuantity(name)
	n, err := strconv.Atoi(layer)
	if !ok || err != nil {
		return fmt.Errorf("%q is not quantity:layer", text)
	}
	*w = stages.Want{Quantity: q, Layer: n}
	return nil
}

// setTensor parses quantity:layer*width=number/number and so on.
func (s *scenario) setTensor(t *stages.Tensor, text string) error {
	head, numbers, _ := strings.Cut(text, "=")
	want, width, _ := strings.Cut(head, "*")
	if err := setWant(&t.Want, want); err != nil {
		return err
	}
	to := reflect.ValueOf(&t.Floats).Elem()
	if t.Quantity.Ints() {
		to = reflect.ValueOf(&t.Ints).Elem()
	}
	return errors.Join(s.set(reflect.ValueOf(&t.Width).Elem(), width), s.set(to, strings.ReplaceAll(numbers, "/", ",")))
}

// setLoss parses seq:stage:layer:error.
func (s *scenario) setLoss(l *stages.Loss, text string) error {
	parts := strings.SplitN(text, ":", 4)
	if len(parts) != 4 {
		return fmt.Errorf("%q is not seq:stage:layer:error", text)
	}
	l.Err = &stages.StepError{Err: errors.New(parts[3])}
	return errors.Join(
		s.set(reflect.ValueOf(&l.Seq).Elem(), parts[0]), s.set(reflect.ValueOf(&l.Err.Stage).Elem(), parts[1]),
		s.set(reflect.ValueOf(&l.Err.Layer).Elem(), parts[2]))
}

// In scripts a page has scriptPageRows positions, and sequence s those from (s-1)·scriptPages on.
const (
	scriptPageRows = 4
	scriptPages    = 4
)

// declareStep parses "step 3 lane=1 rows=1@0:7,1@1:8*,2@5:9*"; without rows= the step has no batch.
func (s *scenario) declareStep(a *Args) error {
	id, err := strconv.ParseUint(a.Word(), 10, 64)
	if err != nil {
		return err
	}
	rows := a.String("rows", "")
	if rows == "" {
		delete(s.batches, stages.StepID(id))
		return nil
	}
	b := &stages.Batch{Lane: a.Int("lane", 0), Urgent: a.Bool("urgent")}
	for i, text := range strings.Split(rows, ",") {
		var r stages.Row
		text, r.Best = strings.CutSuffix(text, "^")
		text, r.Logits = strings.CutSuffix(text, "*")
		if _, err := fmt.Sscanf(text, "%d@%d:%d", &r.Seq, &r.Pos, &r.Token); err != nil {
			return fmt.Errorf("%q is not seq@pos:token: %w", text, err)
		}
		if n := len(b.Segments); n == 0 || b.Segments[n-1].Seq != r.Seq {
			b.Segments = append(b.Segments, stages.Segment{Seq: r.Seq, Row: i, Pos: int(r.Pos)})
		}
		b.Segments[len(b.Segments)-1].Rows++
		b.Rows = append(b.Rows, r)
	}
	if wants := a.String("wants", ""); wants != "" {
		if err := s.set(reflect.ValueOf(&b.Wants).Elem(), wants); err != nil {
			return err
		}
	}
	b.Costs = make([]stages.Cost, len(b.Segments))
	for i := range b.Segments {
		g := &b.Segments[i]
		for p := range (g.Pos + g.Rows + scriptPageRows - 1) / scriptPageRows {
			g.Pages = append(g.Pages, stages.PageID((int(g.Seq)-1)*scriptPages+p))
		}
	}
	b.Traces = make([]stages.TraceContext, len(b.Segments))
	s.batches[stages.StepID(id)], s.shown[stages.StepID(id)] = b, true
	return nil
}

// declarePlan parses "plan p topk=2 picks=3,0 weights=0.75,0.25 uses=0:1,3:0", and
// losses=2:router:1:why.
func (s *scenario) declarePlan(a *Args) error {
	p := &stages.RoutePlan{TopK: a.Int("topk", 1)}
	if err := s.set(reflect.ValueOf(&p.Picks).Elem(), a.String("picks", "")); err != nil {
		return err
	}
	if err := s.set(reflect.ValueOf(&p.Weights).Elem(), a.String("weights", "")); err != nil {
		return err
	}
	if losses := a.String("losses", ""); losses != "" {
		if err := s.set(reflect.ValueOf(&p.Losses).Elem(), losses); err != nil {
			return err
		}
	}
	for _, text := range strings.Split(a.String("uses", ""), ",") {
		expert, pairs, _ := strings.Cut(text, ":")
		e, err := strconv.ParseInt(expert, 10, 32)
		if err != nil {
			return err
		}
		u := stages.ExpertUse{Expert: int32(e)}
		if err := s.set(reflect.ValueOf(&u.Pairs).Elem(), strings.ReplaceAll(pairs, "+", ",")); err != nil {
			return err
		}
		p.Uses = append(p.Uses, u)
	}
	s.plans[a.Word()] = p
	return nil
}

// namedTicket stands for work given to a device. It is never done.
type namedTicket string

func (t namedTicket) OnDone(func(error)) {}
func (t namedTicket) DeviceNS() int64    { return 0 }
func (t namedTicket) String() string     { return string(t) }
