#include "server/target/printer.h"

#include <cctype>

#include "absl/strings/str_cat.h"

namespace fusion {

std::string SubstituteLaneVariables(const std::string& text, const std::string& suffix) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '$') {
      out += text[i];
      continue;
    }
    size_t end = i + 1;
    while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) || text[end] == '_'))
      ++end;
    out.append(text, i + 1, end - i - 1);
    out += suffix;
    i = end - 1;
  }
  return out;
}

std::vector<std::vector<std::string>> VersionHeads(const ir::Statement& statement) {
  const auto constant = [&](const char* value) {
    return absl::StrCat("  constexpr bool ", statement.target, " = ", value, "; (void)", statement.target,
                        ";");
  };
  switch (statement.version) {
    case ir::Statement::Version::kHolds:
      return {{absl::StrCat("fu_expect(", statement.text, ");"), "{", constant("true")}};
    case ir::Statement::Version::kFails:
      return {{"{", constant("false")}};
    case ir::Statement::Version::kBoth:
      break;
  }
  return {{absl::StrCat("if (", statement.text, ") {"), constant("true")}, {"} else {", constant("false")}};
}

}  // namespace fusion
