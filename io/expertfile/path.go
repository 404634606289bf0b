package expertfile

// Path returns where the file of a layer lies, "" for a layer without experts. Records follow each
// other in it without gaps, from its beginning on.
func (f *File) Path(layer int) string {
	if l := f.files[layer]; l != nil {
		return l.path
	}
	return ""
}
