// The lexer makes tokens with positions from C.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/parse/error_list.h"
#include "server/parse/location.h"

namespace fusion {

enum class CTokenKind : uint8_t {
  kName,     // a keyword or an identifier
  kInteger,  // "10", "0x1F", "10L"
  kReal,     // "1.0f", "1e-3"
  kText,     // "a string" or 'c'
  kSymbol,   // an operator or a bracket
  kPragma,   // #pragma; the tokens of its line follow, then kLineEnd
  kDefine,   // #define; likewise
  kLineEnd,
  kEnd,
};

struct CToken {
  CTokenKind kind = CTokenKind::kEnd;
  absl::string_view text;  // in the source
  SourcePosition position;
};

// Reads a text that is valid UTF-8. The last token is kEnd. Comments are skipped, and so are #include of
// headers in angle brackets and the line markers of a preprocessor; other directives are errors, as nothing
// preprocesses here. `text` must outlive the tokens.
std::vector<CToken> LexC(absl::string_view text, ErrorList* errors);

}  // namespace fusion
