// SHA-256 (FIPS 180-4) for content addresses: catalogs, graphs, builds, artifacts.
#pragma once

#include <string>
#include <string_view>

namespace fusion {

// The digest of `data` as 64 lower-case hex digits. Thread safe.
std::string Sha256Hex(std::string_view data);

}  // namespace fusion
