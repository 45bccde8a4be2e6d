#include "server/identity/method_access.h"

#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace fusion {
namespace {

constexpr size_t kSmall = 64 << 10;   // names, page tokens
constexpr size_t kGraph = 80 << 20;   // clients send files of up to 64 MiB
constexpr size_t kReport = 64 << 20;  // what a worker has measured, logs of compilers
constexpr size_t kChunk = 4 << 20;
constexpr size_t kTune = 1 << 20;  // a declaration, a batch of reports

constexpr bool kYes = true, kNo = false;

}  // namespace

const std::vector<MethodAccess>& MethodAccessTable() {
  // Never destroyed: threads of an embedded server may look it up while the process ends.
  static const auto& table = *new std::vector<MethodAccess>{
      // method, user, worker, admin, open, audited, request, scope
      {"/fusion.v1.AdminService/BackUp", kNo, kNo, kYes, kNo, kYes, kSmall, Scope::kManage},
      {"/fusion.v1.AdminService/CreateToken", kNo, kNo, kYes, kNo, kYes, kSmall, Scope::kManage},
      {"/fusion.v1.AdminService/ListAuditEntries", kNo, kNo, kYes, kNo, kNo, kSmall, Scope::kRead},
      {"/fusion.v1.AdminService/ListTokens", kNo, kNo, kYes, kNo, kNo, kSmall, Scope::kRead},
      {"/fusion.v1.AdminService/ResetModel", kNo, kNo, kYes, kNo, kYes, kSmall, Scope::kManage},
      {"/fusion.v1.AdminService/RevokeToken", kNo, kNo, kYes, kNo, kYes, kSmall, Scope::kManage},
      {"/fusion.v1.FleetService/DrainWorker", kNo, kNo, kYes, kNo, kYes, kSmall, Scope::kManage},
      {"/fusion.v1.FleetService/ListWorkers", kYes, kNo, kYes, kNo, kNo, kSmall, Scope::kRead},
      {"/fusion.v1.OptimizerService/CancelJob", kYes, kNo, kYes, kNo, kYes, kSmall, Scope::kSubmit},
      {"/fusion.v1.OptimizerService/Check", kYes, kNo, kYes, kNo, kNo, kGraph, Scope::kRead},
      {"/fusion.v1.OptimizerService/DownloadArtifact", kYes, kNo, kYes, kNo, kNo, kSmall, Scope::kRead},
      {"/fusion.v1.OptimizerService/Explain", kYes, kNo, kYes, kNo, kNo, kGraph, Scope::kRead},
      {"/fusion.v1.OptimizerService/GetJob", kYes, kNo, kYes, kNo, kNo, kSmall, Scope::kRead},
      {"/fusion.v1.OptimizerService/ListFunctions", kYes, kNo, kYes, kNo, kNo, kSmall, Scope::kRead},
      {"/fusion.v1.OptimizerService/ListJobs", kYes, kNo, kYes, kNo, kNo, kSmall, Scope::kRead},
      {"/fusion.v1.OptimizerService/ReportModel", kYes, kNo, kYes, kNo, kNo, kSmall, Scope::kRead},
      {"/fusion.v1.OptimizerService/Submit", kYes, kNo, kYes, kNo, kYes, kGraph, Scope::kSubmit},
      {"/fusion.v1.OptimizerService/TraceJob", kYes, kNo, kYes, kNo, kNo, kSmall, Scope::kRead},
      {"/fusion.v1.OptimizerService/UploadInput", kYes, kNo, kYes, kNo, kNo, kChunk, Scope::kSubmit},
      {"/fusion.v1.OptimizerService/WatchJob", kYes, kNo, kYes, kNo, kNo, kSmall, Scope::kRead},
      {"/fusion.v1.TunerService/GetTuning", kYes, kNo, kYes, kNo, kNo, kSmall, Scope::kRead},
      {"/fusion.v1.TunerService/ListTuningReports", kYes, kNo, kYes, kNo, kNo, kSmall, Scope::kRead},
      {"/fusion.v1.TunerService/ListTunings", kYes, kNo, kYes, kNo, kNo, kSmall, Scope::kRead},
      {"/fusion.v1.TunerService/ResetTuning", kYes, kNo, kYes, kNo, kYes, kSmall, Scope::kTune},
      {"/fusion.v1.TunerService/Tune", kYes, kNo, kYes, kNo, kNo, kTune, Scope::kTune},
      {"/fusion.v1.TunerService/WatchTuning", kYes, kNo, kYes, kNo, kNo, kSmall, Scope::kRead},
      // Not even admins: what is in the build cache came from a worker. Tasks say who did them, so the audit
      // log need not.
      {"/fusion.v1.WorkerService/ReadBlob", kNo, kYes, kNo, kNo, kNo, kSmall, Scope::kWork},
      {"/fusion.v1.WorkerService/Synchronize", kNo, kYes, kNo, kNo, kNo, kReport, Scope::kWork},
      {"/fusion.v1.WorkerService/WriteBlob", kNo, kYes, kNo, kNo, kNo, kChunk, Scope::kWork},
      {"/grpc.health.v1.Health/Check", kYes, kYes, kYes, kYes, kNo, kSmall, Scope::kRead},
      {"/grpc.health.v1.Health/Watch", kYes, kYes, kYes, kYes, kNo, kSmall, Scope::kRead},
      {"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", kYes, kYes, kYes, kNo, kNo, kSmall,
       Scope::kRead},
  };
  return table;
}

const MethodAccess* FindMethodAccess(std::string_view method) {
  const std::vector<MethodAccess>& table = MethodAccessTable();
  auto row =
      std::find_if(table.begin(), table.end(), [&](const MethodAccess& row) { return method == row.method; });
  return row == table.end() ? nullptr : &*row;
}

bool HasMethods(Role role, Scope scope) {
  const std::vector<MethodAccess>& table = MethodAccessTable();
  return std::any_of(table.begin(), table.end(), [&](const MethodAccess& row) {
    const bool may = role == Role::kUser ? row.user : role == Role::kWorker ? row.worker : row.admin;
    return may && !row.open && row.scope == scope;
  });
}

absl::Status CheckMayCall(const Principal& principal, std::string_view method) {
  if (principal.how == Principal::How::kOperator) return absl::OkStatus();
  const MethodAccess* row = FindMethodAccess(method);
  const bool may = row != nullptr && ((principal.role == Role::kUser && row->user) ||
                                      (principal.role == Role::kWorker && row->worker) ||
                                      (principal.role == Role::kAdmin && row->admin));
  const size_t slash = method.rfind('/');
  const std::string name(slash == std::string_view::npos ? method : method.substr(slash + 1));
  if (may && principal.scopes.Has(row->scope)) return absl::OkStatus();
  if (may) {
    const std::vector<std::string> scopes = principal.scopes.Names();
    return absl::PermissionDeniedError(
        absl::StrCat("the token of ", principal.name, " is limited to ",
                     scopes.empty() ? "what this server does not know" : absl::StrJoin(scopes, ", "), "; ",
                     name, " takes the scope ", ScopeName(row->scope)));
  }
  std::vector<std::string> roles;
  if (row != nullptr && row->user) roles.push_back("user");
  if (row != nullptr && row->worker) roles.push_back("worker");
  if (row != nullptr && row->admin) roles.push_back("admin");
  return absl::PermissionDeniedError(
      absl::StrCat(principal.name, " has the role ", absl::AsciiStrToLower(RoleName(principal.role)),
                   ", which may not call ", name,
                   roles.empty() ? "" : absl::StrCat("; it takes the role ", absl::StrJoin(roles, " or "))));
}

}  // namespace fusion
