package msl

import (
	"fmt"
	"regexp"
	"strings"
)

// Thread attributes as the targets spell them, in the order of positions and indices; $ is the
// axis.
const cudaIndex = "(threadIdx.x+blockDim.x*(threadIdx.y+blockDim.y*threadIdx.z))"

var (
	cudaPositions = []string{"blockIdx.$*blockDim.$+threadIdx.$", "blockIdx.$", "threadIdx.$", "blockDim.$", "gridDim.$", "gridDim.$*blockDim.$"}
	cudaIndices   = []string{cudaIndex, cudaIndex + "&31", cudaIndex + ">>5", "32", "(blockDim.x*blockDim.y*blockDim.z+31)/32"}
	emuPositions  = []string{"msl_c->gid[$]", "msl_c->tgid[$]", "msl_c->lid[$]", "msl_c->tgs[$]", "msl_c->ntg[$]", "msl_c->tpg[$]"}
	emuIndices    = []string{"msl_c->lin", "msl_c->lane", "msl_c->sg", "32", "msl_c->nsg"}

	bracketed = regexp.MustCompile(`\[\[[^\]]*\]\]`)
)

// declare writes the C++ variable that holds a thread attribute.
func (a attribute) declare(pos, idx []string, axes string) string {
	var parts []string
	if i, ok := indices[a.name]; ok {
		parts = append(parts, idx[i])
	} else {
		n := 1
		if a.typ != "uint" {
			n = int(a.typ[len(a.typ)-1] - '0')
		}
		for axis := range n {
			parts = append(parts, strings.ReplaceAll(pos[positions[a.name]], "$", axes[axis:axis+1]))
		}
	}
	return fmt.Sprintf("const %s %s = %s(%s); (void)%s;", a.typ, a.variable, a.typ, strings.Join(parts, ", "), a.variable)
}

// emit writes the kernel for a target.
func (k *Kernel) emit(b *strings.Builder, t Target) {
	switch t {
	case CUDA:
		k.emitCUDA(b)
	case Emulator:
		k.emitEmulator(b)
	default:
		k.emitMetal(b, t)
	}
}

// bodyText writes the body with its threadgroup variables declared by declare, whose dims are like
// "[8][32]".
func (k *Kernel) bodyText(t Target, declare func(typ, name, dims string) string) string {
	var b strings.Builder
	for i := 0; i < len(k.body); i++ {
		end, ok := threadgroupVariable(k.body, i)
		if !ok {
			b.WriteString(plain(k.body[i], t))
			continue
		}
		dims := until(k.body, i, ";[")
		d := declared(k.body[i:dims])
		b.WriteString(declare(d.typ, d.name, strings.Join(strings.Fields(join(k.body[dims:end])), " ")) + ";")
		// lines keep their numbers
		b.WriteString(strings.Repeat("\n", strings.Count(join(k.body[i:end]), "\n")))
		i = end
	}
	return b.String()
}

// write joins head, preparations and body.
func (k *Kernel) write(b *strings.Builder, head string, before []string, body string) {
	fmt.Fprintf(b, "\n%s\n  %s\n#line %d %q\n%s}\n", head, strings.Join(before, "\n  "), k.line, k.file, body)
}

// emitMetal writes the kernel unchanged, or for Lint without attributes and with static threadgroup
// variables.
func (k *Kernel) emitMetal(b *strings.Builder, t Target) {
	static, signature, head := "", join(k.params), ""
	switch {
	case t == Lint:
		static, signature = "static ", bracketed.ReplaceAllString(signature, "")
	case k.MaxThreads > 0:
		head = fmt.Sprintf("[[max_total_threads_per_threadgroup(%d)]]\n", k.MaxThreads)
	}
	head += fmt.Sprintf("#line %d %q\n%s {", k.params[0].line, k.file, signature)
	k.write(b, head, nil, k.bodyText(t, func(typ, name, dims string) string {
		return fmt.Sprintf("%sthreadgroup %s %s%s", static, typ, name, dims)
	}))
}

// Statements of a kernel that starts work before earlier launches have ended: see docs/gpu.md.
const launchDependents, waitPrerequisites = "LAUNCH_DEPENDENTS", "WAIT_PREREQUISITES"

// count returns how often a word is in the body.
func (k *Kernel) count(word string) (n int) {
	for _, t := range k.body {
		if t.text == word {
			n++
		}
	}
	return n
}

// emitCUDA writes the kernel. MSL_BEGIN, which cuda.h defines, comes first, unless the kernel has
// the two statements itself.
func (k *Kernel) emitCUDA(b *strings.Builder) {
	var params []string
	var before []string
	if k.count(waitPrerequisites) == 0 {
		before = append(before, "MSL_BEGIN")
	}
	for _, a := range k.Args {
		switch {
		case a.Kind == Bytes:
			params = append(params, fmt.Sprintf("const %s %s", a.Type, a.Name))
		case a.Const:
			params = append(params, fmt.Sprintf("const %s* MSL_RESTRICT %s", a.Type, a.Name))
		default:
			params = append(params, fmt.Sprintf("%s* %s", a.Type, a.Name))
		}
	}
	bounds := ""
	if k.MaxThreads > 0 {
		bounds = fmt.Sprintf("__launch_bounds__(%d) ", k.MaxThreads)
	}
	for _, a := range k.attributes {
		before = append(before, a.declare(cudaPositions, cudaIndices, "xyz"))
	}
	k.write(b, fmt.Sprintf("extern \"C\" __global__ void %s%s(%s) {", bounds, k.Name, strings.Join(params, ", ")), before,
		k.bodyText(CUDA, func(typ, name, dims string) string { return fmt.Sprintf("__shared__ %s %s%s", typ, name, dims) }))
}

// emitEmulator writes a function of the arguments' addresses, the thread, and its threadgroup's
// memory, whose variables are a struct. It also writes a table name__meta: the struct's size, then
// each argument's size (Bytes) or alignment (Buffer).
func (k *Kernel) emitEmulator(b *strings.Builder) {
	var before, fields, meta []string
	for i, a := range k.Args {
		if a.Kind == Bytes {
			before = append(before, fmt.Sprintf("const %s& %s = *(const %s*)msl_a[%d]; (void)%s;", a.Type, a.Name, a.Type, i, a.Name))
			meta = append(meta, fmt.Sprintf("sizeof(%s)", a.Type))
			continue
		}
		typ := a.Type
		if a.Const {
			typ = "const " + typ
		}
		before = append(before, fmt.Sprintf("%s* const %s = (%s*)msl_a[%d]; (void)%s;", typ, a.Name, typ, i, a.Name))
		meta = append(meta, fmt.Sprintf("alignof(%s)", a.Type))
	}
	for _, a := range k.attributes {
		before = append(before, a.declare(emuPositions, emuIndices, "012"))
	}
	body := k.bodyText(Emulator, func(typ, name, dims string) string {
		fields = append(fields, fmt.Sprintf("alignas(16) %s %s%s;", typ, name, dims))
		return fmt.Sprintf("%s (&%s)%s = msl_tg->%s", typ, name, dims, name)
	})
	size := "0"
	if len(fields) > 0 {
		size = "sizeof(" + k.Name + "__tg)"
	}
	k.write(b, fmt.Sprintf("struct %[1]s__tg { %[2]s };\nextern \"C\" void %[1]s(void* const* msl_a, const msl_ctx* msl_c, void* msl_t) {\n"+
		"  %[1]s__tg* msl_tg = (%[1]s__tg*)msl_t; (void)msl_tg; (void)msl_a; (void)msl_c;", k.Name, strings.Join(fields, " ")), before, body)
	fmt.Fprintf(b, "extern \"C\" { extern const unsigned %[1]s__meta[]; const unsigned %[1]s__meta[] = {%[2]s}; }\n",
		k.Name, strings.Join(append([]string{size}, meta...), ", "))
}
