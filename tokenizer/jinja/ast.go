package jinja

// expr is an expression of the tree; eval computes it.
type expr interface {
	lineNo() int
	eval(r *run, sc *scope) (Value, error)
}

// stmt is a statement; exec runs it and writes to out.
type stmt interface {
	lineNo() int
	exec(r *run, sc *scope, out *buffer) (flow, error)
}

// flow says how a statement ended.
type flow uint8

const (
	flowNext flow = iota
	flowBreak
	flowContinue
)

// place is the line on which a node begins.
type place int

func (p place) lineNo() int { return int(p) }

// Expressions.
type (
	constExpr struct {
		place
		val Value
	}
	nameExpr struct {
		place
		name string
	}
	nsRefExpr struct { // ns.attr on the left of an assignment, never evaluated
		place
		name, attr string
	}
	attrExpr struct {
		place
		obj  expr
		name string
	}
	itemExpr struct {
		place
		obj, arg expr
	}
	sliceExpr struct { // obj[start:stop:step]; the three may be nil
		place
		obj, start, stop, step expr
	}
	callExpr struct {
		place
		fn   expr
		args callArgs
	}
	filterExpr struct {
		place
		in   expr // nil for the first filter of a block, which gets the block's text
		name string
		args callArgs
	}
	testExpr struct {
		place
		in   expr
		name string
		args callArgs
	}
	unaryExpr struct {
		place
		op string // "not", "-" or "+"
		x  expr
	}
	binaryExpr struct {
		place
		op   string // an arithmetic one
		l, r expr
	}
	logicExpr struct {
		place
		or   bool
		l, r expr
	}
	compareExpr struct {
		place
		first expr
		rest  []operand
	}
	concatExpr struct {
		place
		parts []expr
	}
	condExpr struct {
		place
		test, then expr
		other      expr // may be nil
	}
	tupleExpr struct {
		place
		items []expr
	}
	listExpr struct {
		place
		items []expr
	}
	dictExpr struct {
		place
		keys, vals []expr
	}
)

type operand struct {
	op string // one of == != < <= > >= in notin
	x  expr
}

// callArgs are the arguments of a call as written.
type callArgs struct {
	pos        []expr
	kw         []kwExpr
	star, dict expr // *star and **dict; may be nil
}

type kwExpr struct {
	name string
	x    expr
}

// target is what can be assigned to: a name, an attribute of a namespace, or several.
type target struct {
	place
	name  string
	attr  string   // not "" for an attribute of the namespace name
	items []target // not nil for several
}

// Statements.
type (
	textStmt struct {
		place
		text string
	}
	printStmt struct {
		place
		x expr
	}
	ifStmt struct {
		place
		tests  []expr
		bodies [][]stmt
		other  []stmt
	}
	forStmt struct {
		place
		to        target
		iter      expr
		filter    expr // may be nil
		recursive bool
		body      []stmt
		other     []stmt
	}
	setStmt struct {
		place
		to target
		x  expr
	}
	setBlockStmt struct {
		place
		to     target
		filter expr // a filterExpr, or nil
		body   []stmt
	}
	macroStmt struct {
		place
		def *macroDef
	}
	callStmt struct {
		place
		caller *macroDef
		call   *callExpr
	}
	filterStmt struct {
		place
		filter expr
		body   []stmt
	}
	withStmt struct {
		place
		to   []target
		vals []expr
		body []stmt
	}
	generationStmt struct {
		place
		body []stmt
	}
	loopStmt struct { // break or continue
		place
		flow flow
	}
)

// macroDef is what a macro or a call block says.
type macroDef struct {
	name     string // "" for a call block
	params   []string
	defaults []expr // of the last params
	body     []stmt

	usesCaller, usesVarargs, usesKwargs bool
}
