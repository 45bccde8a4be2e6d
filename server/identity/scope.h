// What a token can be limited to, beside what its role may.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace fusion {

// Every method belongs to one (method_access.cc).
enum class Scope : unsigned {
  kRead = 1,    // "read": whatever changes nothing
  kSubmit = 2,  // "submit": submits and cancels jobs
  kTune = 4,    // "tune": programs that tune, and resetting what they found
  kManage =
      8,  // "manage": tokens, workers that are drained, copies of the database, what predictions are made of
  kWork = 16,  // "work": what workers do
};
inline constexpr Scope kAllScopes[] = {Scope::kRead, Scope::kSubmit, Scope::kTune, Scope::kManage,
                                       Scope::kWork};

// "read".
const char* ScopeName(Scope scope);

// A set of them. By default all: also those that later versions may have.
class Scopes {
 public:
  // Of names; none: all. InvalidArgument, with the names that there are.
  static absl::StatusOr<Scopes> Parse(const std::vector<std::string>& names);
  // Of what Text() gave. A name that is not known is of a later version, and opens nothing here.
  static Scopes Stored(std::string_view text);

  bool Has(Scope scope) const { return all_ || (mask_ & static_cast<unsigned>(scope)) != 0; }
  bool all() const { return all_; }
  // Whether whoever has these may give those to another.
  bool Contains(const Scopes& others) const { return all_ || (!others.all_ && (others.mask_ & ~mask_) == 0); }
  // In the order of kAllScopes; all: none.
  std::vector<std::string> Names() const;
  // The names with a space between; all: "".
  std::string Text() const;

  bool operator==(const Scopes&) const = default;

 private:
  bool all_ = true;
  unsigned mask_ = 0;
};

}  // namespace fusion
