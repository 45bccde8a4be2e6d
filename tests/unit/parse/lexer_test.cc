#include "server/parse/lexer.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/unit/parse/source.h"

namespace fusion {
namespace {

using testing::TextErrors;

// "name x 1:1|symbol = 1:3|..."
std::string Tokens(const std::string& text) {
  ErrorList errors("f");
  Lexer lexer(text, &errors);
  std::string all;
  for (;;) {
    const Token token = lexer.Next();
    const char* kind = token.kind == TokenKind::kName     ? "name"
                       : token.kind == TokenKind::kNumber ? "number"
                       : token.kind == TokenKind::kSymbol ? "symbol"
                                                          : "end";
    absl::StrAppend(&all, kind, " ", token.text, " ", token.position.line, ":", token.position.column, "|");
    if (token.kind == TokenKind::kEnd) return all;
  }
}

TEST(Lexer, TokensAndPositions) {
  EXPECT_EQ(Tokens("x1=f(_a,\n\t-2.5e-3);"),
            "name x1 1:1|symbol = 1:3|name f 1:4|symbol ( 1:5|name _a 1:6|symbol , 1:8|number -2.5e-3 2:2|"
            "symbol ) 2:9|symbol ; 2:10|end  2:11|");
  EXPECT_EQ(Tokens(""), "end  1:1|");
}

TEST(Lexer, SignsBelongToNumbers) {
  EXPECT_EQ(Tokens("- 1"), "symbol - 1:1|number 1 1:3|end  1:4|");
  EXPECT_EQ(Tokens("-.5"), "number -.5 1:1|end  1:4|");
  EXPECT_EQ(Tokens("+x"), "symbol + 1:1|name x 1:2|end  1:3|");
  EXPECT_EQ(Tokens("1e+5-2"), "number 1e+5 1:1|number -2 1:5|end  1:7|");
}

TEST(Lexer, ColumnsCountCharacters) { EXPECT_EQ(Tokens("/* é·ü€😀 */ x"), "name x 1:13|end  1:14|"); }

TEST(Lexer, Comments) {
  EXPECT_EQ(Tokens("a // b\nc /* d\n\n * e */ f /**/ g"),
            "name a 1:1|name c 2:1|name f 4:9|name g 4:16|end  4:17|");
  EXPECT_EQ(Tokens("a /*/ b */ c"), "name a 1:1|name c 1:12|end  1:13|");
}

TEST(Lexer, UnclosedComment) {
  EXPECT_EQ(TextErrors("SCALAR x, y;\ninput x;\ny = neg(x); /* never\nreturn y;\n"),
            "f.fuse:3:13: error: this comment is not closed; end it with */");
  EXPECT_EQ(TextErrors("SCALAR x, y;\ninput x;\ny = neg(x) /* never\nreturn y;\n/"),
            "f.fuse:3:12: error: this comment is not closed; end it with */");
}

TEST(Lexer, StrayCharacters) {
  const std::string allowed = "; outside comments a line has names, numbers and = , ; ( ) [ ] < > alone";
  EXPECT_EQ(TextErrors("SCALAR x, y;\ninput x;\ny = neg(x) @#;\nreturn y;\n"),
            "f.fuse:3:12: error: stray characters @#" + allowed);
  EXPECT_EQ(
      TextErrors("SCALAR x, y;\ninput x;\ny = “neg”(x);\nreturn y;\n"),
      "f.fuse:3:5: error: stray character “" + allowed + "\nf.fuse:3:9: error: stray character ”" + allowed);
  EXPECT_EQ(TextErrors("SCALAR x, y;\ninput x;\ny = neg(x);\x01\nreturn y;\n"),
            "f.fuse:3:12: error: stray character \\x01" + allowed);
  EXPECT_EQ(TextErrors("SCALAR x, y;\ninput x;\ny = neg(x); €€€€€€€€€€€€\nreturn y;\n"),
            "f.fuse:3:13: error: stray characters €€€€€€€€..." + allowed);
}

TEST(Lexer, ABadByteIsReportedAlone) {
  EXPECT_EQ(TextErrors("SCALAR x, y;\n// caf\xE9\nfoo"),
            "f.fuse:2:7: error: byte 0xe9 is not UTF-8; save the file as UTF-8 text");
}

}  // namespace
}  // namespace fusion
