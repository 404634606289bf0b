// Package analyse says where the time of tokens went: functions of a record.Recording, and of
// nothing else.
//
// # The path of a token
//
// The wall time of a token begins with the answer to the token before it in its sequence, if it
// follows that, and otherwise with its request. It ends when its answer is ready. Each instant of
// that time belongs to one Cause. The rule is:
//
// From the answer the walk goes back in time. It stands at something that happened, and asks what
// made that possible last; the time between belongs to the way from there to here.
//
//   - A message was handled: that time is Stage. Before, it lay in the mailbox: where the stages
//     handled something else of the step meanwhile it is Stage, where they handled what belongs to
//     others it is OtherRequest, else Mailbox. Then the walk is where it was sent: at the message
//     that its sender was handling, at the end of the submission or of the read that it tells of.
//   - Commands ended: the time in which the device worked on them is Device, but for what urgent
//     work of others took amid them. If the device worked on something until they began, and they
//     were waiting, the walk is at that, which is OtherRequest if it is another step's. Otherwise
//     it is at the message that submitted them, and the time until the device began is DeviceStart,
//     or, where stages handled messages meanwhile, theirs: the device's goroutine may have run
//     them.
//   - A read ended: the time since a worker took it is Disk, the time before that is in line,
//     behind other reads of the step (ReadQueue), guesses (Guesses) or reads of others
//     (OtherRequest). It counts from when the step came to need the expert. So what was read ahead
//     by then costs nothing. If the token before used the expert, and it has left its slot since,
//     Disk is Room.
//   - An expert host answered: of the time since it was asked the host says how long it had other
//     asks to answer (HostWait), read experts (HostDisk) and computed (HostCompute). The rest is
//     Network, one half before and one after.
//   - A stage was waiting for something that a record.Wait tells of. If that was an earlier layer
//     or wave of the step itself, the walk goes on to that, and what else passed in that time is
//     the wait's: Credit or Room. If others were in the way the time of the wait is Credit, Room,
//     OtherRequest, Company or Memory, but for what the device did for the step or, where the ring
//     was full, for others. A wait for a credit or for room also has what it made late: the
//     messages, and for room the reads, that follow it before the device works for the step again,
//     for as long as the wait was.
//
// So what the device did beside a read that the step waited for is not Device, and a read beside
// what the device did is not Disk: only what the token had to wait for counts. Before the first
// step and between steps of a prompt there is no path: there, waits that are recorded of the
// request, and what the stages handled, say what the time was for. What nothing says is
// Unexplained.
//
// # Idle times
//
// The time in which the device, or the disk, did nothing is divided by what the tokens under way
// were spending it on: the one that was answered first, of those that were asked for.
package analyse
