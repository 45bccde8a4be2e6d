// Which role may call which method: the one table of it.
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
  Scope scope;                   // that a token which is limited must have
};

// The rows, by method. Static storage.
const std::vector<MethodAccess>& MethodAccessTable();
// Null: the method is in no row, and nobody but the operator may call it.
const MethodAccess* FindMethodAccess(std::string_view method);

// Whether there is a method of the scope that the role may call.
bool HasMethods(Role role, Scope scope);

// PermissionDenied, with the roles that may, or the scope that the caller's token lacks. The operator may
// call everything, what is not in the table too.
absl::Status CheckMayCall(const Principal& principal, std::string_view method);

}  // namespace fusion
