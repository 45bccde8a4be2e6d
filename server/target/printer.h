// What printers of kernel IR share.
#pragma once

#include <string>
#include <vector>

#include "server/lowering/kernel_ir.h"

namespace fusion {

// Of ir::Statement::Kind::kVersions: the lines before each version's body; behind the last stands a "}".
std::vector<std::vector<std::string>> VersionHeads(const ir::Statement& statement);

// Replaces each "$name" by the name with `suffix` behind it.
std::string SubstituteLaneVariables(const std::string& text, const std::string& suffix);

}  // namespace fusion
