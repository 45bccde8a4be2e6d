// The commands of fusion-server beside serving: care of the database by the people who run it.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace fusion {

// Adds `backup`, `restore` and `check`. When one is given, *run becomes what it does; that says what it did
// on stdout, errors on stderr, and returns the exit code: 0 done, 1 failed, 2 bad input.
void AddMaintenanceCommands(CLI::App* app, std::function<int()>* run);

}  // namespace fusion
