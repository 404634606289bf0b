package stagetest

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/moeflux/moeflux-actor/stages"
)

// longest is how many numbers of a slice are written out; of more only their number is, in
// brackets.
const longest = 40

// format writes a message as a command has it: type, step, and every field that is not zero.
func (s *scenario) format(m stages.Message) string {
	v := reflect.ValueOf(m).Elem()
	line := v.Type().Name()
	if h := m.Head(); h != nil {
		line += fmt.Sprintf(" step=%d layer=%d", h.ID, h.Layer)
	}
	return line + formatFields(v)
}

// formatFields writes the fields of a struct that are not zero, each after a space.
func formatFields(v reflect.Value) string {
	var b strings.Builder
	for i := range v.NumField() {
		f := v.Type().Field(i)
		switch {
		case f.Anonymous || !f.IsExported() || v.Field(i).IsZero():
		case f.Type == reflect.TypeFor[stages.Account](), f.Type == reflect.TypeFor[stages.AccountStats]():
			// the simulator compares accounts with what was counted
		case f.Type == reflect.TypeFor[any](): // what only the stage it comes from understands
			fmt.Fprintf(&b, " %s=there", strings.ToLower(f.Name))
		default:
			fmt.Fprintf(&b, " %s=%s", strings.ToLower(f.Name), formatValue(v.Field(i)))
		}
	}
	return b.String()
}

func formatValue(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case error:
		return strconv.Quote(x.Error())
	case stages.Ticket:
		return ticketName(x)
	case stages.Pos:
		return x.String()
	case *stages.RoutePlan:
		return formatPlan(x)
	case stages.TraceContext:
		return "sampled"
	case stages.Want:
		return x.String()
	case stages.Tensor:
		return formatTensor(&x)
	}
	if n := names[v.Type()]; n != nil {
		return n[v.Uint()]
	}
	switch v.Kind() {
	case reflect.Pointer:
		return formatValue(v.Elem())
	case reflect.Struct:
		return "{" + strings.TrimPrefix(formatFields(v), " ") + "}"
	case reflect.Float32:
		return strconv.FormatFloat(v.Float(), 'g', -1, 32)
	case reflect.Slice:
		if v.Len() > longest {
			return fmt.Sprintf("[%d]", v.Len())
		}
		parts := make([]string, v.Len())
		for i := range parts {
			parts[i] = formatValue(v.Index(i))
		}
		return strings.Join(parts, ",")
	default:
		return fmt.Sprint(v.Interface())
	}
}

// ticketName returns the name of a test's ticket, or the type of another one.
func ticketName(t stages.Ticket) string {
	if n, ok := t.(fmt.Stringer); ok {
		return n.String()
	}
	return reflect.TypeOf(t).Name()
}

// formatTensor writes a tensor as scripts have it.
func formatTensor(t *stages.Tensor) string {
	numbers := formatValue(reflect.ValueOf(t.Floats))
	if t.Quantity.Ints() {
		numbers = formatValue(reflect.ValueOf(t.Ints))
	}
	return fmt.Sprintf("%v*%d=%s", t.Want, t.Width, strings.ReplaceAll(numbers, ",", "/"))
}

// formatBatch writes a step's batch as the command step has it.
func formatBatch(h *stages.Step) string {
	b := h.Batch
	rows := make([]string, len(b.Rows))
	for i, r := range b.Rows {
		rows[i] = fmt.Sprintf("%d@%d:%d", r.Seq, r.Pos, r.Token)
		if r.Logits {
			rows[i] += "*"
		}
		if r.Best {
			rows[i] += "^"
		}
	}
	line := fmt.Sprintf("step %d lane=%d rows=%s", h.ID, b.Lane, strings.Join(rows, ","))
	for _, g := range b.Segments {
		if g.Copy.From != g.Copy.To {
			line += fmt.Sprintf(" copy=%d>%d", g.Copy.From, g.Copy.To)
		}
	}
	for _, flag := range []struct {
		name string
		set  bool
	}{{"traced", b.Traced}, {"urgent", b.Urgent}} {
		if flag.set {
			line += fmt.Sprintf(" %s=true", flag.name)
		}
	}
	if len(b.Wants) > 0 {
		line += " wants=" + formatValue(reflect.ValueOf(b.Wants))
	}
	return line
}

// formatPlan writes a plan as the command plan has it.
func formatPlan(p *stages.RoutePlan) string {
	uses := make([]string, len(p.Uses))
	for i, u := range p.Uses {
		uses[i] = fmt.Sprint(u.Expert)
		for k, pair := range u.Pairs {
			sep := "+"
			if k == 0 {
				sep = ":"
			}
			uses[i] += fmt.Sprint(sep, pair)
		}
	}
	line := fmt.Sprintf("{topk=%d picks=%s weights=%s uses=%s", p.TopK, formatValue(reflect.ValueOf(p.Picks)),
		formatValue(reflect.ValueOf(p.Weights)), strings.Join(uses, ","))
	if len(p.Losses) > 0 {
		line += " losses=" + formatValue(reflect.ValueOf(p.Losses))
	}
	return line + "}"
}
