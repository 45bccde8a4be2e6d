// deploy/dev/scaffold_function.sh makes functions that load as soon as they are documented.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "library/catalog/catalog.h"
#include "tests/folders.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

class ScaffoldTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(::testing::TempDir()) /
            ("scaffold_" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  void TearDown() override { fs::remove_all(root_); }

  int Run(const std::string& arguments) {
    std::string command = testing::SourceFolder() + "/deploy/dev/scaffold_function.sh " + arguments + " > " +
                          (root_ / "output").string() + " 2>&1";
    int status = std::system(command.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  fs::path functions() const { return root_ / "functions"; }
  static std::string Read(const fs::path& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }

  fs::path root_;
};

TEST_F(ScaffoldTest, EveryTemplateLoadsOnceItIsDocumented) {
  for (const char* domain : {"entrywise", "blas1", "reduce", "elements"}) {
    std::string name = std::string("new_") + domain;
    ASSERT_EQ(Run(std::string(domain) + " " + name + " " + functions().string()), 0)
        << Read(root_ / "output");
    fs::path description = functions() / domain / name / "function.textproto";
    EXPECT_THAT(
        std::string(Catalog::LoadDirectory(functions().string()).status().message()),
        HasSubstr(name + "/function.textproto:5:1: function \"" + name + "\": the documentation is missing"));
    std::string text = Read(description);
    size_t at = text.find("documentation: \"\"");
    ASSERT_NE(at, std::string::npos);
    std::ofstream(description) << text.insert(at + 16, "What it does.");
    absl::StatusOr<std::shared_ptr<const Catalog>> catalog = Catalog::LoadDirectory(functions().string());
    ASSERT_TRUE(catalog.ok()) << catalog.status();
    EXPECT_NE((*catalog)->Find(name), nullptr);
  }
}

TEST_F(ScaffoldTest, SaysWhatIsStillNeeded) {
  ASSERT_EQ(Run("elements new_function " + functions().string()), 0);
  std::string output = Read(root_ / "output");
  EXPECT_THAT(output, HasSubstr("documentation"));
  EXPECT_THAT(output, HasSubstr("routines.h"));
  EXPECT_THAT(output, HasSubstr("tests/property/functions/element_routine_table.cc"));
  EXPECT_THAT(output, HasSubstr("tests/reference/reference_kernels.cc"));
}

TEST_F(ScaffoldTest, RefusesBadNamesAndExistingFunctions) {
  EXPECT_EQ(Run("blas1"), 2);
  EXPECT_EQ(Run("blas1 '2x' " + functions().string()), 2);
  EXPECT_EQ(Run("'../x' name " + functions().string()), 2);
  EXPECT_FALSE(fs::exists(functions()));
  ASSERT_EQ(Run("blas1 mine " + functions().string()), 0);
  EXPECT_EQ(Run("blas2 mine " + functions().string()), 1);
  EXPECT_THAT(Read(root_ / "output"), HasSubstr("a function \"mine\" exists"));
  EXPECT_FALSE(fs::exists(functions() / "blas2"));
}

}  // namespace
}  // namespace fusion
