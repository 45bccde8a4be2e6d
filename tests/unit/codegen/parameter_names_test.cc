// Names of values become names of parameters in C++ that includes standard headers.
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "server/codegen/exported_launch.h"

namespace fusion {
namespace {

std::string NameOf(const std::string& name) {
  Value value;
  value.name = name;
  return ParameterName(value);
}

TEST(ParameterName, IsTheValuesWhereThatIsFree) {
  for (const char* name : {"A", "x", "M1", "Fx", "AtA", "alpha", "B2", "Errno"})
    EXPECT_EQ(NameOf(name), name);
}

TEST(ParameterName, KeywordsAndMacrosGetAnUnderscore) {
  for (const char* name : {"float", "main_", "stream", "n_m", "errno", "stderr", "EOF", "NAN", "NULL",
                           "INFINITY", "M_PI", "INT_MAX", "FLT_EPSILON", "SIZE_MAX", "BUFSIZ", "linux"})
    EXPECT_EQ(NameOf(name), std::string(name) + "_");
}

}  // namespace
}  // namespace fusion
