// Texts with pieces cut out, doubled and moved: reading them ends, with loops or with errors that have
// places.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "server/loops/check.h"
#include "tests/folders.h"

namespace fusion {
namespace {

std::vector<std::string> Listings() {
  std::vector<std::string> texts;
  for (const auto& entry : std::filesystem::directory_iterator(testing::SourceFolder() + "/examples/loops")) {
    std::ifstream file(entry.path());
    texts.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return texts;
}

TEST(BrokenLoopsTest, ReadingEndsWithLoopsOrErrors) {
  const std::vector<std::string> listings = Listings();
  ASSERT_GE(listings.size(), 7u);
  static const char* const kPieces[] = {"for (",
                                        "#pragma omp target\n",
                                        "meta_for (",
                                        "{",
                                        "}",
                                        ")",
                                        "]",
                                        ";",
                                        "/",
                                        "% 0",
                                        "<< 99",
                                        "- 9223372036854775807",
                                        "++",
                                        "\"",
                                        "int ",
                                        "#define N ",
                                        "\\\n",
                                        "?",
                                        "reduction(+:",
                                        "\xC3\xA4",
                                        "cache(",
                                        "if (i)",
                                        "else",
                                        "1..2",
                                        "/*"};
  std::mt19937 random(3);
  int refused = 0;
  for (int trial = 0; trial < 300; ++trial) {
    std::string text = listings[random() % listings.size()];
    for (int change = 0; change < 1 + int(random() % 3); ++change) {
      const size_t at = random() % text.size(), length = random() % std::min<size_t>(30, text.size() - at);
      const std::string piece = text.substr(at, length);
      switch (random() % 4) {
        case 0:
          text.erase(at, length);
          break;
        case 1:
          text.insert(random() % text.size(), piece);
          break;
        case 2:
          text.insert(at, kPieces[random() % std::size(kPieces)]);
          break;
        case 3:
          text.resize(at + 1);
          break;
      }
    }
    const auto loops = CheckLoops(text, "x.c");
    if (loops.ok()) continue;
    ++refused;
    EXPECT_TRUE(absl::StartsWith(loops.status().message(), "x.c:")) << loops.status();
  }
  EXPECT_GT(refused, 100);
}

TEST(BrokenLoopsTest, DeepTextsAreRefused) {
  const auto message = [](const std::string& text) {
    return std::string(CheckLoops(text, "x.c").status().message());
  };
  const std::string head = "int n; float a[n];\n#pragma fusion parametric\n";
  EXPECT_TRUE(absl::StrContains(
      message(head + "for (int i = 0; i < n; i++) a[i] = " + std::string(30000, '(')), "deep"));
  EXPECT_TRUE(absl::StrContains(
      message(head + "for (int i = 0; i < n; i++) a[i] = " + std::string(30000, '!') + "1;"), "deep"));
  EXPECT_TRUE(
      absl::StrContains(message(head + "for (int i = 0; i < n; i++) " + std::string(30000, '{')), "deep"));
  std::string loops;
  for (int i = 0; i < 1000; ++i) loops += "for (int i = 0; i < n; i++) ";
  EXPECT_TRUE(absl::StrContains(message(head + loops + "a[0] = 1;"), "deep"));
}

}  // namespace
}  // namespace fusion
