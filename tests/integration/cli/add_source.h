// A file without faults, for tests of what the command line does with one.
#pragma once

namespace fusion::testing {

inline constexpr char kAddSource[] =
    "size n = 1000;\nvector[n] x, y, z;\ninput x, y;\nz = vadd(x, y);\nreturn z;\n";

}  // namespace fusion::testing
