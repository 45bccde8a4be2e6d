// This is the one table of which role may call which method.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "server/identity/principal.h"

namespace fusion {

struct MethodAccess {
  const char* method;  // "/fusion.v1.OptimizerService/Submit"
  bool user, worker, admin;
  bool open;                     // to everybody, without any credential
  bool audited;                  // changes something that a person answers for
  size_t maximum_request_bytes;  // of one message
  Scope scope;                   // a token that is limited must have it
};

// Returns the rows, by method, in static storage.
const std::vector<MethodAccess>& MethodAccessTable();
// Returns null when the method is in no row: then nobody but the operator may call it.
const MethodAccess* FindMethodAccess(std::string_view method);

// Returns whether there is a method of the scope that the role may call.
bool HasMethods(Role role, Scope scope);

// PermissionDenied names the roles that may call the method, or the scope that the caller's token lacks. The
// operator may call everything, what is not in the table too.
absl::Status CheckMayCall(const Principal& principal, std::string_view method);

}  // namespace fusion
