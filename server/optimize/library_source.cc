#include "server/optimize/library_source.h"

#include <set>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/parse/parse.h"

namespace fusion {
namespace {

// "MATRIX<r,3>" for n = 4: "MATRIX4x3".
std::string TypeText(const std::string& pattern, int n) {
  std::string text;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (i > 0 && absl::ascii_islower(c) && (pattern[i - 1] == '<' || pattern[i - 1] == ','))
      absl::StrAppend(&text, n);
    else if (c == ',')
      text += 'x';
    else if (c != '<' && c != '>')
      text += c;
  }
  return text;
}

}  // namespace

std::string LibrarySource(const std::shared_ptr<const Catalog>& catalog) {
  std::string declarations, calls;
  std::vector<std::string> inputs, results;
  std::set<std::string> present;
  for (const v1::FunctionDefinition& function : catalog->definitions())
    for (const v1::OverloadDefinition& overload : function.overloads()) {
      if (overload.form() != v1::ELEMENT) continue;
      for (int n : {2, 3, 4, 5, 8}) {
        const std::string result = absl::StrCat("y", results.size());
        std::vector<std::string> operands;
        std::string declared, types;
        for (int k = 0; k < overload.operands_size(); ++k) {
          operands.push_back(absl::StrCat("x", results.size(), "_", k));
          const std::string type = TypeText(overload.operands(k).type(), n);
          absl::StrAppend(&types, type, " ");
          absl::StrAppend(&declared, type, " ", operands.back(), ";\n");
        }
        absl::StrAppend(&declared, TypeText(overload.result(), n), " ", result, ";\n");
        const std::string names = absl::StrJoin(operands, ", ");
        const std::string call = absl::StrCat(result, " = ", function.name(), "(", names, ");\n");
        // The constraint of a function says which sizes it takes.
        v1::GraphSource alone;
        alone.set_fuse(absl::StrCat(declared, "input ", names, ";\n", call, "return ", result, ";\n"));
        if (!ParseSource(alone, catalog).ok()) continue;
        if (!present.insert(absl::StrCat(function.name(), " ", types)).second) continue;
        absl::StrAppend(&declarations, declared);
        inputs.insert(inputs.end(), operands.begin(), operands.end());
        absl::StrAppend(&calls, call);
        results.push_back(result);
      }
    }
  return absl::StrCat(declarations, "input ", absl::StrJoin(inputs, ", "), ";\n", calls, "return ",
                      absl::StrJoin(results, ", "), ";\n");
}

}  // namespace fusion
