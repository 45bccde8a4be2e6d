// The commands of fusion-client, as one CLI11 tree.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace fusion {

struct Invocation;

// Registers every command. `invocation` outlives the app.
void AddCommands(CLI::App* app, Invocation* invocation);

// Parses the arguments and runs the command chosen. Bad usage: a message on stderr, kBadInput.
int RunCommandLine(int argc, const char* const* argv);

// Returns the commands right below one, whether or not they were given.
std::vector<CLI::App*> CommandsBelow(CLI::App* command);

}  // namespace fusion
