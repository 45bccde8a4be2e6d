// Made at build time by cmake/EmbedFiles.cmake.
#pragma once

#include <map>
#include <string>

namespace fusion {

// Returns the texts of profiles/*.textproto, by their names: "cuda.textproto".
const std::map<std::string, std::string>& EmbeddedProfiles();

}  // namespace fusion
