// main() of every test program: GoogleTest, plus --update-goldens (tests/golden).
#include "tests/test_main.h"

#include <gtest/gtest.h>

#include <cstring>

namespace fusion::testing {
bool g_update_goldens = false;
}

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--update-goldens") == 0) fusion::testing::g_update_goldens = true;
  }
  return RUN_ALL_TESTS();
}
