// Counts what SQLite is asked to do, on any connection.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace fusion {

// From now on every connection of this process is counted, which takes time itself.
void CountStatements();
// Returns the counts by text; statements of triggers begin with "-- ".
std::map<std::string, int64_t> CountedStatements();

}  // namespace fusion
