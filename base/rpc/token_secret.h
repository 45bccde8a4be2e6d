// The text of a token: "fus_<id>_<secret>", 64 random bits and 256 random bits, in hex.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace fusion {

struct TokenText {
  std::string id;      // 16 hex digits
  std::string secret;  // 64 hex digits
};

// Makes a token from the system's random numbers.
TokenText MakeTokenText();
std::string FormatToken(const TokenText& token);
// Returns nothing when it is no text of a token.
std::optional<TokenText> ParseToken(std::string_view text);
// Returns the hash that is stored of a secret. The secret has 256 random bits, so nothing slower than SHA-256
// is needed to keep it.
std::string HashOfSecret(const std::string& secret);
// Takes equally long for any two strings of the same length.
bool EqualInConstantTime(std::string_view a, std::string_view b);

}  // namespace fusion
