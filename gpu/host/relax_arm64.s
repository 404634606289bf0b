//go:build !noasm

#include "textflag.h"

// func relax()
TEXT ·relax(SB), NOSPLIT|NOFRAME, $0-0
	YIELD
	RET

// func fetch(at uintptr, lines int)
TEXT ·fetch(SB), NOSPLIT|NOFRAME, $0-16
	MOVD at+0(FP), R0
	MOVD lines+8(FP), R1
line:
	PRFM (R0), PLDL2KEEP
	ADD $64, R0
	SUBS $1, R1
	BNE line
	RET
