// Somebody who submits jobs while the farm works, a process of his own as fusion-client is.
#pragma once

#include <string>

namespace fusion {

// Submits a job every 20 ms until standard input ends, then writes how many seconds each took to be
// acknowledged, a line for each. The exit status.
int SubmitUntilStopped(const std::string& address);

}  // namespace fusion
