#include "base/rpc/token_secret.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/sha256.h"

namespace fusion {
namespace {

constexpr size_t kIdBytes = 8, kSecretBytes = 32;
constexpr std::string_view kPrefix = "fus_";

std::string RandomHex(size_t bytes) {
  std::string random(bytes, '\0');
  // Without random numbers there is nothing safe to go on with.
  if (getentropy(random.data(), random.size()) != 0) std::abort();
  return absl::BytesToHexString(absl::string_view(random.data(), random.size()));
}

bool IsHex(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char digit) {
    return (digit >= '0' && digit <= '9') || (digit >= 'a' && digit <= 'f');
  });
}

}  // namespace

TokenText MakeTokenText() { return TokenText{RandomHex(kIdBytes), RandomHex(kSecretBytes)}; }

std::string FormatToken(const TokenText& token) { return absl::StrCat("fus_", token.id, "_", token.secret); }

std::optional<TokenText> ParseToken(std::string_view text) {
  if (text.size() != kPrefix.size() + 2 * kIdBytes + 1 + 2 * kSecretBytes || !text.starts_with(kPrefix))
    return std::nullopt;
  text.remove_prefix(kPrefix.size());
  TokenText token{std::string(text.substr(0, 2 * kIdBytes)), std::string(text.substr(2 * kIdBytes + 1))};
  if (text[2 * kIdBytes] != '_' || !IsHex(token.id) || !IsHex(token.secret)) return std::nullopt;
  return token;
}

std::string HashOfSecret(const std::string& secret) { return Sha256Hex(secret); }

bool EqualInConstantTime(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  volatile unsigned char difference = 0;
  for (size_t i = 0; i < a.size(); ++i) difference = difference | static_cast<unsigned char>(a[i] ^ b[i]);
  return difference == 0;
}

}  // namespace fusion
