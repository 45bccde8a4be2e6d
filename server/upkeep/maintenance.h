// Adds the commands of fusion-server beside serving, with which people take care of the database.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace fusion {

// Adds `backup`, `restore` and `check`. When one is given, *run becomes a function that runs it, says what it
// did on stdout, errors on stderr, and returns the exit code: 0 done, 1 failed, 2 bad input.
void AddMaintenanceCommands(CLI::App* app, std::function<int()>* run);

}  // namespace fusion
