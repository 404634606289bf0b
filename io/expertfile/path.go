package expertfile

// Dir returns the folder of the layer files.
func (f *File) Dir() string { return f.dir }

// Path returns the path of a layer's file, "" for a layer without experts. The file consists of
// records without gaps, unless Spread says otherwise.
func (f *File) Path(layer int) string {
	if f.spread != nil {
		return f.spread.path(layer)
	}
	if l := f.files[layer]; l != nil {
		return l.path
	}
	return ""
}
