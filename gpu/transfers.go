package gpu

// Upload copies host bytes to the device.
type Upload struct {
	Dst View
	Src []byte // left alone by the caller until the ticket is done
}

// Kind returns the kind, see Op.
func (o *Upload) Kind() Kind { return KindUpload }

// Name returns the operation's name, see Op.
func (o *Upload) Name() string { return "upload" }

// Check reports sizes and views that do not fit, see Op. The error is an *OpError.
func (o *Upload) Check() error {
	c := checker{op: o.Name()}
	c.positive("bytes of Src", len(o.Src))
	c.bytes("Dst", o.Dst, len(o.Src), 1)
	return c.result()
}

// Download copies device bytes to the host.
type Download struct {
	Src View
	Dst []byte // belongs to the device until the ticket is done
}

// Kind returns the kind, see Op.
func (o *Download) Kind() Kind { return KindDownload }

// Name returns the operation's name, see Op.
func (o *Download) Name() string { return "download" }

// Check reports sizes and views that do not fit, see Op. The error is an *OpError.
func (o *Download) Check() error {
	c := checker{op: o.Name()}
	c.positive("bytes of Dst", len(o.Dst))
	c.bytes("Src", o.Src, len(o.Dst), 1)
	return c.result()
}

// Fill sets Bytes bytes to zero.
type Fill struct {
	Dst   View
	Bytes int
}

// Kind returns the kind, see Op.
func (o *Fill) Kind() Kind { return KindFill }

// Name returns the operation's name, see Op.
func (o *Fill) Name() string { return "fill" }

// Check reports sizes and views that do not fit, see Op. The error is an *OpError.
func (o *Fill) Check() error {
	c := checker{op: o.Name()}
	c.positive("Bytes", o.Bytes)
	c.bytes("Dst", o.Dst, o.Bytes, 1)
	return c.result()
}
