// A graph whose search takes long and needs much memory.
#pragma once

#include <string>

#include "absl/strings/str_cat.h"
#include "fusion/v1/graph.pb.h"

namespace fusion::testing {

// A sum of `terms` products of vectors: with limits.fusions = kMostFusions its search takes minutes and
// gigabytes, unless it is ended.
inline v1::GraphSource LargeSource(int terms = 60) {
  std::string text = "size n = 1000; vector[n] x";
  for (int i = 0; i < terms; ++i) absl::StrAppend(&text, ", v", i, ", p", i, ", s", i);
  absl::StrAppend(&text, "; input x");
  for (int i = 0; i < terms; ++i) absl::StrAppend(&text, ", v", i);
  absl::StrAppend(&text, "; p0 = vmul(x, v0); s0 = vadd(p0, x);");
  for (int i = 1; i < terms; ++i)
    absl::StrAppend(&text, " p", i, " = vmul(x, v", i, "); s", i, " = vadd(s", i - 1, ", p", i, ");");
  absl::StrAppend(&text, " return s", terms - 1, ";");
  v1::GraphSource source;
  source.set_fuse(text);
  return source;
}

}  // namespace fusion::testing
