// Gives up what a process could use against its machine.
#pragma once

namespace fusion {

// No new privileges from here on, no capabilities, also not for what is started later. Only system calls; for
// the calling thread, so before there are others. 0 or errno.
int DropPrivileges();

// When memory runs out, this process goes first.
void VolunteerForOutOfMemory();

}  // namespace fusion
