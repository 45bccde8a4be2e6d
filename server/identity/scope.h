// A token can be limited to scopes, beside what its role may.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace fusion {

// Every method belongs to one scope (method_access.cc).
enum class Scope : unsigned {
  kRead = 1,    // "read": whatever changes nothing
  kSubmit = 2,  // "submit": submits and cancels jobs
  kTune = 4,    // "tune": programs that tune, and resetting what they found
  // "manage": tokens, workers that are drained, copies of the database, what predictions are made of
  kManage = 8,
  kWork = 16,  // "work": what workers do
};
inline constexpr Scope kAllScopes[] = {Scope::kRead, Scope::kSubmit, Scope::kTune, Scope::kManage,
                                       Scope::kWork};

// Returns a name such as "read".
const char* ScopeName(Scope scope);

// A set of scopes. By default it holds all: also those that later versions may have.
class Scopes {
 public:
  // Makes the set of these names; none: all. InvalidArgument names the scopes that there are.
  static absl::StatusOr<Scopes> Parse(const std::vector<std::string>& names);
  // Makes the set of what Text() gave. An unknown name is of a later version, and opens nothing here.
  static Scopes Stored(std::string_view text);

  bool Has(Scope scope) const { return all_ || (mask_ & static_cast<unsigned>(scope)) != 0; }
  bool all() const { return all_; }
  // Returns whether a holder of these scopes may give `others` to another.
  bool Contains(const Scopes& others) const { return all_ || (!others.all_ && (others.mask_ & ~mask_) == 0); }
  // Returns the names in the order of kAllScopes; all: none.
  std::vector<std::string> Names() const;
  // Returns the names with a space between; all: "".
  std::string Text() const;

  bool operator==(const Scopes&) const = default;

 private:
  bool all_ = true;
  unsigned mask_ = 0;
};

}  // namespace fusion
