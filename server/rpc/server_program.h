// fusion-server: the server as a program.
#pragma once

namespace fusion {

// Returns the exit code.
int RunServerProgram(int argc, char** argv);

}  // namespace fusion
