#pragma once

#include <string>

namespace fusion::testing {

// The root of the sources that the tests were built from, and the folder they were built in. Functions and
// not macros on the compiler's command line, so that a checkout in another folder compiles the same text.
std::string SourceFolder();
std::string BuildFolder();

}  // namespace fusion::testing
