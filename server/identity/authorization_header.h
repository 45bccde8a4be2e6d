// The header in which callers show a token.
#pragma once

#include <string>
#include <string_view>

namespace fusion {

inline constexpr std::string_view kAuthorizationHeader = "authorization";

// One more such header of a call, beside those before. Of two none counts: proxies and servers could each
// believe another one.
inline void AddAuthorization(std::string_view value, std::string* authorization) {
  *authorization = authorization->empty() && !value.empty() ? std::string(value) : "two headers";
}

}  // namespace fusion
