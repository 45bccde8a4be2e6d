#include "server/identity/scope.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace fusion {

const char* ScopeName(Scope scope) {
  switch (scope) {
    case Scope::kRead:
      return "read";
    case Scope::kSubmit:
      return "submit";
    case Scope::kTune:
      return "tune";
    case Scope::kManage:
      return "manage";
    case Scope::kWork:
      return "work";
  }
  return "";
}

absl::StatusOr<Scopes> Scopes::Parse(const std::vector<std::string>& names) {
  Scopes scopes;
  for (const std::string& name : names) {
    const auto* scope = std::find_if(std::begin(kAllScopes), std::end(kAllScopes),
                                     [&](Scope scope) { return name == ScopeName(scope); });
    if (scope == std::end(kAllScopes))
      return absl::InvalidArgumentError(absl::StrCat(
          "scopes: there is no \"", absl::CHexEscape(name.substr(0, 64)), "\"; there are ",
          absl::StrJoin(kAllScopes, ", ",
                        [](std::string* out, Scope scope) { absl::StrAppend(out, ScopeName(scope)); })));
    scopes.all_ = false;
    scopes.mask_ |= static_cast<unsigned>(*scope);
  }
  return scopes;
}

Scopes Scopes::Stored(std::string_view text) {
  Scopes scopes;
  if (text.empty()) return scopes;
  scopes.all_ = false;
  for (const std::string& name :
       std::vector<std::string>(absl::StrSplit(absl::string_view(text.data(), text.size()), ' ')))
    for (const Scope scope : kAllScopes)
      if (name == ScopeName(scope)) scopes.mask_ |= static_cast<unsigned>(scope);
  return scopes;
}

std::vector<std::string> Scopes::Names() const {
  std::vector<std::string> names;
  for (const Scope scope : kAllScopes)
    if (!all_ && Has(scope)) names.push_back(ScopeName(scope));
  return names;
}

std::string Scopes::Text() const { return absl::StrJoin(Names(), " "); }

}  // namespace fusion
