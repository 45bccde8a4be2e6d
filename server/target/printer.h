// Printers of kernel IR share these functions.
#pragma once

#include <string>
#include <vector>

#include "server/lowering/kernel_ir.h"

namespace fusion {

// Returns the lines before each version's body, for ir::Statement::Kind::kVersions; a "}" follows the last.
std::vector<std::vector<std::string>> VersionHeads(const ir::Statement& statement);

// Replaces each "$name" by the name with `suffix` behind it.
std::string SubstituteLaneVariables(const std::string& text, const std::string& suffix);

}  // namespace fusion
