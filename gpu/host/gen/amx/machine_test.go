package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
)

// machine runs the assembly that this package writes, instruction by instruction, so that its
// products are checked where there is no matrix unit. Addresses are places in mem.
type machine struct {
	mem     []byte
	regs    map[string]int
	z       map[string][16]uint32
	tiles   map[string][]byte // rows of 64 bytes
	height  map[string]int    // rows that the configuration gives a tile
	width   map[string]int    // and their bytes
	below   bool              // of the last comparison
	equal   bool
	fetched []int
}

func (m *machine) u64(at int) int       { return int(binary.LittleEndian.Uint64(m.mem[at:])) }
func (m *machine) put(at, v int)        { binary.LittleEndian.PutUint64(m.mem[at:], uint64(v)) }
func (m *machine) u32(at int) uint32    { return binary.LittleEndian.Uint32(m.mem[at:]) }
func (m *machine) float(at int) float32 { return math.Float32frombits(m.u32(at)) }
func (m *machine) set(at int, v float32) {
	binary.LittleEndian.PutUint32(m.mem[at:], math.Float32bits(v))
}

// address returns the place of an operand such as 8(R8)(R12*2).
func (m *machine) address(op string) (at int) {
	parts := strings.Split(op, "(")
	if parts[0] != "" {
		at, _ = strconv.Atoi(parts[0])
	}
	for _, p := range parts[1:] {
		name, times, scaled := strings.Cut(strings.TrimSuffix(p, ")"), "*")
		n := 1
		if scaled {
			n, _ = strconv.Atoi(times)
		}
		at += n * m.regs[name]
	}
	return at
}

// value returns a constant, a register or a word of memory.
func (m *machine) value(op string) int {
	if number, ok := strings.CutPrefix(op, "$"); ok {
		n, _ := strconv.ParseInt(number, 0, 64)
		return int(n)
	}
	if strings.Contains(op, "(") {
		return m.u64(m.address(op))
	}
	return m.regs[op]
}

// run runs a function whose argument a is the place of its tileArgs.
func (m *machine) run(code string, a int) error {
	lines := strings.Split(code[strings.Index(code, "TEXT"):], "\n")[1:]
	labels := map[string]int{}
	for i, l := range lines {
		if name, ok := strings.CutSuffix(l, ":"); ok {
			labels[name] = i
		}
	}
	for i, steps := 0, 0; i < len(lines); i++ {
		if steps++; steps > 1e6 {
			return fmt.Errorf("it does not end")
		}
		text := strings.TrimSpace(lines[i])
		if _, comment, raw := strings.Cut(text, " // "); raw {
			text = comment
		}
		name, rest, _ := strings.Cut(text, " ")
		ops := strings.Split(rest, ", ")
		switch {
		case text == "" || strings.HasSuffix(text, ":") || name == "VZEROUPPER" || name == "tilerelease":
		case name == "RET":
			return nil
		case name == "MOVQ" && ops[0] == "a+0(FP)":
			m.regs[ops[1]] = a
		case name == "JB" && m.below, name == "JAE" && !m.below, name == "JEQ" && m.equal:
			i = labels[ops[0]]
		case name == "JB" || name == "JAE" || name == "JEQ":
		case !m.scalar(name, ops) && !m.vector(name, ops) && !m.tile(name, ops):
			return fmt.Errorf("line %d: %q is unknown", i, text)
		}
	}
	return fmt.Errorf("it ends without RET")
}

func (m *machine) scalar(name string, ops []string) bool {
	switch name {
	case "MOVQ":
		if strings.Contains(ops[1], "(") {
			m.put(m.address(ops[1]), m.value(ops[0]))
		} else {
			m.regs[ops[1]] = m.value(ops[0])
		}
	case "LEAQ":
		m.regs[ops[1]] = m.address(ops[0])
	case "ADDQ":
		m.regs[ops[1]] += m.value(ops[0])
	case "CMPQ":
		x, y := m.value(ops[0]), m.value(ops[1])
		m.below, m.equal = x < y, x == y
	case "PREFETCHT0":
	case "PREFETCHT1":
		m.fetched = append(m.fetched, m.address(ops[0]))
	default:
		return false
	}
	return true
}

func (m *machine) vector(name string, ops []string) bool {
	var z [16]uint32
	last := ops[len(ops)-1]
	of := func(i int) float32 { return math.Float32frombits(m.z[ops[1]][i]) }
	for i := range z {
		switch {
		case name == "VPXORD":
		case name == "VPMOVZXWD":
			z[i] = uint32(binary.LittleEndian.Uint16(m.mem[m.address(ops[0])+2*i:]))
		case name == "VPSLLD":
			z[i] = m.z[ops[1]][i] << m.value(ops[0])
		case name == "VCVTDQ2PS":
			z[i] = math.Float32bits(float32(int32(m.u32(m.address(ops[0]) + 4*i))))
		case name == "VMULPS.BCST":
			z[i] = math.Float32bits(m.float(m.address(ops[0])) * of(i))
		case name == "VMULPS":
			z[i] = math.Float32bits(math.Float32frombits(m.z[ops[0]][i]) * of(i))
		case name == "VADDPS":
			z[i] = math.Float32bits(math.Float32frombits(m.z[ops[0]][i]) + of(i))
		case name == "VMOVUPS":
			m.set(m.address(last)+4*i, math.Float32frombits(m.z[ops[0]][i]))
		default:
			return false
		}
	}
	if name != "VMOVUPS" {
		m.z[last] = z
	}
	return true
}

// tile runs an instruction of the matrix unit. Rows that the configuration does not give a tile are
// neither loaded nor stored.
func (m *machine) tile(name string, ops []string) bool {
	last := ops[len(ops)-1]
	switch name {
	case "ldtilecfg":
		at := m.address(ops[0])
		for i := range 8 {
			t := fmt.Sprintf("tmm%d", i)
			m.width[t], m.height[t] = int(binary.LittleEndian.Uint16(m.mem[at+16+2*i:])), int(m.mem[at+48+i])
			m.tiles[t] = make([]byte, 1024)
		}
	case "tilezero":
		m.tiles[last] = make([]byte, 1024)
	case "tileloadd", "tilestored":
		place, t := ops[0], last
		if name == "tilestored" {
			place, t = last, ops[0]
		}
		base, stride, _ := strings.Cut(place, ")(")
		for r := range m.height[t] {
			row := m.tiles[t][64*r:][:m.width[t]]
			part := m.mem[m.address(base+")")+r*m.regs[strings.TrimSuffix(stride, "*1)")]:][:m.width[t]]
			if name == "tileloadd" {
				copy(row, part)
			} else {
				copy(part, row)
			}
		}
	case "tdpbsud":
		sums, x, w := m.tiles[ops[2]], m.tiles[ops[1]], m.tiles[ops[0]]
		for r := range m.height[ops[2]] {
			for o := range m.width[ops[2]] / 4 {
				at := 64*r + 4*o
				sum := int32(binary.LittleEndian.Uint32(sums[at:]))
				for k := range m.width[ops[1]] {
					sum += int32(int8(x[64*r+k])) * int32(w[64*(k/4)+4*o+k%4])
				}
				binary.LittleEndian.PutUint32(sums[at:], uint32(sum))
			}
		}
	default:
		return false
	}
	return true
}

// Places of a machine's memory in TestTiles.
const (
	placeArgs, placeConfig, placeSums, placeYs, placeY = 0, 1024, 2048, 4096, 8192
	placeW, placeScales, placeX                        = 1 << 15, 1 << 17, 1 << 18
	placeAhead, places                                 = 1 << 20, 1 << 19
)

// TestTiles runs the product of a panel and compares it with its definition, for one group and
// several, of one step and several, for few rows and many. Nothing but the rows' results changes,
// and the next panel's codes are fetched up to their end.
func TestTiles(t *testing.T) {
	a := new(assembly)
	a.tiles()
	code := a.code.String()
	for _, groups := range []int{1, 2, 3, 6} {
		for _, group := range []int{32, 64, 128} {
			for _, n := range []int{1, 4, 15, 16} {
				if err := tryTiles(code, groups, group, n); err != nil {
					t.Errorf("%d groups of %d, %d rows: %v", groups, group, n, err)
				}
			}
		}
	}
}

func tryTiles(code string, groups, group, n int) error {
	m := &machine{mem: make([]byte, places), regs: map[string]int{}, z: map[string][16]uint32{}, tiles: map[string][]byte{}, height: map[string]int{}, width: map[string]int{}}
	for i := range m.mem {
		m.mem[i] = byte(i*i>>3 + 7*i)
	}
	cols, step := groups*group, min(group, 64)
	stride, ahead := cols+8*groups, 512
	clear(m.mem[placeConfig:placeSums])
	m.mem[placeConfig] = 1
	for i, size := range [][2]int{{n, 64}, {n, 64}, {n, step}, {step / 4, 64}} {
		m.mem[placeConfig+48+i], m.mem[placeConfig+16+2*i] = byte(size[0]), byte(size[1])
	}
	for r := range n {
		m.put(placeYs+8*r, placeY+1024*r)
		for g := range 2 * groups {
			m.set(placeX+r*stride+cols+4*g, float32(r-g)/7)
		}
	}
	for i := range 2 * 16 * groups { // scales, then biases: bf16 near 1
		binary.LittleEndian.PutUint16(m.mem[placeScales+2*i:], uint16(0x3f00+37*i%256))
	}
	biases := placeScales + 32*groups
	for i, v := range []int{placeConfig, placeW, placeScales, biases, biases, placeX, placeX + cols, placeX + cols, stride, n, group, step, 16 * step,
		placeSums, placeYs, 64, placeAhead, placeAhead + ahead} {
		m.put(placeArgs+8*i, v)
	}
	before := string(m.mem)
	if err := m.run(code, placeArgs); err != nil {
		return err
	}
	for r := range n {
		for o := range 16 {
			total := float32(0)
			for g := range groups {
				dot := int32(0)
				for i := g * group; i < (g+1)*group; i++ {
					dot += int32(int8(m.mem[placeX+r*stride+i])) * int32(m.mem[placeW+i/4*64+4*o+i%4])
				}
				number := func(list int) float32 {
					return math.Float32frombits(uint32(binary.LittleEndian.Uint16(m.mem[list+2*(16*g+o):])) << 16)
				}
				s, sum := m.float(placeX+r*stride+cols+8*g), m.float(placeX+r*stride+cols+8*g+4)
				t, u := float32(number(placeScales)*s), float32(number(biases)*sum)
				total += float32(float32(float32(dot)*t) + u)
			}
			if got := m.float(placeY + 1024*r + 64 + 4*o); got != total {
				return fmt.Errorf("row %d of X and %d of W: got %v, want %v", r, o, got, total)
			}
		}
		copy(m.mem[placeY+1024*r+64:][:64], before[placeY+1024*r+64:])
	}
	copy(m.mem[placeArgs:placeConfig], before) // it moves the place of what it fetches
	copy(m.mem[placeSums:placeYs], before[placeSums:])
	if string(m.mem) != before {
		return fmt.Errorf("it wrote elsewhere")
	}
	for i, at := range m.fetched {
		if at != placeAhead+64*i {
			return fmt.Errorf("fetch %d is of byte %d", i, at-placeAhead)
		}
	}
	if got, want := len(m.fetched), min(aheadLines*groups, ahead/64); got != want {
		return fmt.Errorf("%d lines of the next panel fetched, want %d", got, want)
	}
	return nil
}
