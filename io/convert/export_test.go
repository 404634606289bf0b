package convert

// OutFile is a file being written.
type OutFile = outFile

// WithCreate returns options whose files are opened by create.
func (o Options) WithCreate(create func(path string) (OutFile, error)) Options {
	o.create = create
	return o
}

// PackName is packName.
var PackName = packName

// StateName is stateName.
const StateName = stateName
