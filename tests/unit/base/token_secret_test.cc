#include "base/rpc/token_secret.h"

#include <gtest/gtest.h>

#include <set>

namespace fusion {
namespace {

TEST(TokenSecretTest, WhatIsMadeIsRead) {
  std::set<std::string> secrets;
  for (int i = 0; i < 100; ++i) {
    const TokenText made = MakeTokenText();
    const std::string text = FormatToken(made);
    EXPECT_EQ(text.size(), 4u + 16 + 1 + 64);
    const auto read = ParseToken(text);
    ASSERT_TRUE(read.has_value()) << text;
    EXPECT_EQ(read->id, made.id);
    EXPECT_EQ(read->secret, made.secret);
    secrets.insert(made.secret);
  }
  EXPECT_EQ(secrets.size(), 100u);
}

TEST(TokenSecretTest, AnythingElseIsNot) {
  const std::string good = "fus_0123456789abcdef_" + std::string(64, 'a');
  ASSERT_TRUE(ParseToken(good).has_value());
  for (size_t i = 0; i < good.size(); ++i) {
    std::string text = good;
    text[i] = 'G';
    EXPECT_FALSE(ParseToken(text).has_value()) << text;
    EXPECT_FALSE(ParseToken(good.substr(0, i)).has_value());
  }
  EXPECT_FALSE(ParseToken(good + "a").has_value());
  EXPECT_FALSE(ParseToken(" " + good).has_value());
}

TEST(TokenSecretTest, Comparison) {
  EXPECT_TRUE(EqualInConstantTime("", ""));
  EXPECT_TRUE(EqualInConstantTime("abc", "abc"));
  EXPECT_FALSE(EqualInConstantTime("abc", "abd"));
  EXPECT_FALSE(EqualInConstantTime("abc", "bbc"));
  EXPECT_FALSE(EqualInConstantTime("abc", "ab"));
}

TEST(TokenSecretTest, TheHashIsSha256) {
  EXPECT_EQ(HashOfSecret("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

}  // namespace
}  // namespace fusion
