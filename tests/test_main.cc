// main() of every test program: GoogleTest, plus --update-goldens (tests/golden).
#include "tests/test_main.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>

namespace fusion::testing {
bool g_update_goldens = false;
}

int main(int argc, char** argv) {
  // TempDir() of each process is a folder of its own: tests that run at once would meet in another.
  std::string folder = ::testing::TempDir() + "fusion_test_XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) {
    std::perror(folder.c_str());
    return 1;
  }
  setenv("TEST_TMPDIR", folder.c_str(), 1);
  ::testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--update-goldens") == 0) fusion::testing::g_update_goldens = true;
  }
  const int failed = RUN_ALL_TESTS();
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  return failed;
}
