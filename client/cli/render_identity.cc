// Tokens and the audit log.
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/render.h"
#include "client/cli/table.h"

namespace fusion {
namespace {

// "user"; "" for nobody known.
std::string RoleText(v1::Role role) {
  return role == v1::ROLE_UNSPECIFIED ? "" : absl::AsciiStrToLower(v1::Role_Name(role));
}

Json TimeJson(bool present, const google::protobuf::Timestamp& time) {
  return present ? Json(TimeText(time)) : Json(nullptr);
}

Json FieldsOf(const v1::Token& token) {
  return {{"token", token.name()},
          {"principal", token.principal()},
          {"role", RoleText(token.role())},
          {"scopes", Json(std::vector<std::string>(token.scopes().begin(), token.scopes().end()))},
          {"create_time", TimeText(token.create_time())},
          {"expire_time", TimeJson(token.has_expire_time(), token.expire_time())},
          {"revoke_time", TimeJson(token.has_revoke_time(), token.revoke_time())}};
}

}  // namespace

Json TokenJson(const v1::Token& token, const std::string& secret) {
  Json json = {{"schema", "fusion.token/1"}};
  json.update(FieldsOf(token));
  if (!secret.empty()) json["secret"] = secret;
  return json;
}

Json TokenListJson(const v1::ListTokensResponse& response) {
  Json tokens = Json::array();
  for (const v1::Token& token : response.tokens()) tokens.push_back(FieldsOf(token));
  return {{"schema", "fusion.tokens/1"}, {"tokens", std::move(tokens)}};
}

Json AuditJson(const v1::ListAuditEntriesResponse& response) {
  Json entries = Json::array();
  for (const v1::AuditEntry& entry : response.entries()) {
    entries.push_back({{"number", entry.number()},
                       {"time", TimeText(entry.time())},
                       {"principal", entry.principal()},
                       {"role", RoleText(entry.role())},
                       {"peer", entry.peer()},
                       {"method", entry.method()},
                       {"subject", entry.subject()},
                       {"outcome", entry.outcome()}});
  }
  return {{"schema", "fusion.audit/1"}, {"entries", std::move(entries)}};
}

std::string TokenListText(const v1::ListTokensResponse& response, int64_t now, const TextStyle& style) {
  if (response.tokens().empty()) return "no tokens\n";
  Table table;
  for (const char* header : {"token", "principal", "role", "scopes", "state", "made", "expires"})
    table.AddColumn(header, Table::Align::kLeft);
  for (const v1::Token& token : response.tokens()) {
    const bool expired = token.has_expire_time() && token.expire_time().seconds() <= now;
    table.AddRow({token.name(), token.principal(), RoleText(token.role()),
                  token.scopes().empty() ? "all" : absl::StrJoin(token.scopes(), ","),
                  token.has_revoke_time() ? "revoked"
                  : expired               ? "expired"
                                          : "good",
                  TimeText(token.create_time()),
                  token.has_expire_time() ? TimeText(token.expire_time()) : "never"});
  }
  return table.Print(style.width);
}

std::string AuditText(const v1::ListAuditEntriesResponse& response, const TextStyle& style) {
  if (response.entries().empty()) return "no entries\n";
  Table table;
  for (const char* header : {"time", "principal", "role", "outcome", "call", "subject", "peer"})
    table.AddColumn(header, Table::Align::kLeft);
  for (const v1::AuditEntry& entry : response.entries()) {
    const size_t slash = entry.method().rfind('/');
    table.AddRow({TimeText(entry.time()), entry.principal(), RoleText(entry.role()), entry.outcome(),
                  slash == std::string::npos ? entry.method() : entry.method().substr(slash + 1),
                  entry.subject(), entry.peer()});
  }
  return table.Print(style.width);
}

}  // namespace fusion
