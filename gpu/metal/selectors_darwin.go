//go:build cgo

package metal

// The messages that are sent by objc.Call: darwinkit does not have them, or panics when its methods
// are called. The tests hold each against darwinkit's bindings or what Apple's headers declare; the
// messages of encode.c stand in messages.h.
const (
	newPipelineMessage       = "newComputePipelineStateWithFunction:error:" // to MTLDevice
	newResidencySetMessage   = "newResidencySetWithDescriptor:error:"       // to MTLDevice
	newMessage               = "new"                                        // to a class
	addAllocationMessage     = "addAllocation:"                             // to MTLResidencySet
	removeAllocationMessage  = "removeAllocation:"                          // to MTLResidencySet
	commitAllocationsMessage = "commit"                                     // to MTLResidencySet
	addResidencySetMessage   = "addResidencySet:"                           // to MTLCommandQueue
)

// residencySetClass is the class of what a residency set is made by.
const residencySetClass = "MTLResidencySetDescriptor"
