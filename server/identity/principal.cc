#include "server/identity/principal.h"

#include <algorithm>

#include "absl/strings/ascii.h"

namespace fusion {
namespace {

constexpr size_t kMaximumNameBytes = 64;

}  // namespace

const char* RoleName(Role role) {
  switch (role) {
    case Role::kUser:
      return "USER";
    case Role::kWorker:
      return "WORKER";
    case Role::kAdmin:
      return "ADMIN";
  }
  return "";
}

std::optional<Role> ParseRole(std::string_view name) {
  for (Role role : {Role::kUser, Role::kWorker, Role::kAdmin})
    if (name == RoleName(role)) return role;
  return std::nullopt;
}

bool IsPrincipalName(std::string_view name) {
  return !name.empty() && name.size() <= kMaximumNameBytes &&
         std::all_of(name.begin(), name.end(), [](char letter) {
           return absl::ascii_isalnum(static_cast<unsigned char>(letter)) || letter == '.' || letter == '_' ||
                  letter == '@' || letter == '-';
         });
}

bool MaySeeJobsOf(const Principal& principal, std::string_view owner) {
  return principal.role == Role::kAdmin || (principal.role == Role::kUser && principal.name == owner);
}

bool MayActAsWorker(const Principal& principal, std::string_view worker) {
  if (principal.how == Principal::How::kOperator) return true;
  if (principal.role != Role::kWorker || principal.name.empty()) return false;
  return worker.starts_with(principal.name) &&
         (worker.size() == principal.name.size() || worker[principal.name.size()] == '/');
}

}  // namespace fusion
