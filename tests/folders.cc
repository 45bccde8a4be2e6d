#include "tests/folders.h"

namespace fusion::testing {

std::string SourceFolder() { return FUSION_SOURCE_DIR; }
std::string BuildFolder() { return FUSION_BINARY_DIR; }

}  // namespace fusion::testing
