// A principal is who a caller is, and what it may be.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "server/identity/scope.h"

namespace fusion {

// Numbers equal those of v1::Role.
enum class Role { kUser = 1, kWorker = 2, kAdmin = 3 };

// "USER", "WORKER", "ADMIN": the names of v1::Role.
const char* RoleName(Role role);
// Parses such a name.
std::optional<Role> ParseRole(std::string_view name);

struct Principal {
  // kOperator: calls in the server's own process, and all calls where it listens without TLS.
  enum class How { kOperator, kCertificate, kToken };

  std::string name;  // "" for the operator, which has no name
  Role role = Role::kAdmin;
  How how = How::kOperator;
  Scopes scopes;  // scopes of the token; a certificate has all

  bool operator==(const Principal&) const = default;
};

// Returns whether the name is 1 to 64 letters, digits and "._@-". It has no '/': keys of requests and names
// of workers are made of names with it.
bool IsPrincipalName(std::string_view name);

// Returns whether the principal may see and cancel what `owner` submitted: admins all, users their own.
bool MaySeeJobsOf(const Principal& principal, std::string_view owner);

// Returns whether the principal may speak as this worker. A worker's name is that of the principal, or "<that
// name>/<anything>", so that the workers of one host can share a certificate. The operator may speak as any.
bool MayActAsWorker(const Principal& principal, std::string_view worker);

}  // namespace fusion
