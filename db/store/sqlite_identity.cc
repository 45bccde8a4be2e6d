// Tokens, and the audit log.
#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "db/store/sqlite_store.h"

namespace fusion {
namespace {

constexpr char kTokenColumns[] =
    "id, principal, role, secret_hash, created_micros, expires_micros, revoked_micros, scopes";

TokenRecord ReadToken(const Statement& row) {
  return TokenRecord{.id = row.Text(0),
                     .principal = row.Text(1),
                     .role = row.Text(2),
                     .secret_hash = row.Text(3),
                     .created = row.Time(4),
                     .expires = row.Time(5),
                     .revoked = row.Time(6),
                     .scopes = row.Text(7)};
}

absl::StatusOr<TokenRecord> FindToken(Database& database, const std::string& id) {
  Statement query = database.Query(absl::StrCat("SELECT ", kTokenColumns, " FROM tokens WHERE id = ?1"), id);
  FUSION_ASSIGN_OR_RETURN(bool row, query.Step());
  if (!row) return absl::NotFoundError(absl::StrCat("there is no token ", id));
  return ReadToken(query);
}

}  // namespace

absl::Status SqliteStore::AddToken(const TokenRecord& token) {
  return Write([&](Database& database) -> absl::Status {
    if (absl::StatusOr<TokenRecord> known = FindToken(database, token.id); known.ok())
      return absl::AlreadyExistsError(absl::StrCat("there is a token ", token.id, " already"));
    return database
        .Query(
            "INSERT INTO tokens (id, principal, role, secret_hash, created_micros, expires_micros, "
            "revoked_micros, scopes) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            token.id, token.principal, token.role, token.secret_hash, token.created, token.expires,
            token.revoked, token.scopes)
        .Run();
  });
}

absl::StatusOr<std::vector<TokenRecord>> SqliteStore::Tokens() {
  Reader reader(*this);
  std::vector<TokenRecord> tokens;
  Statement query = reader->Query(absl::StrCat("SELECT ", kTokenColumns, " FROM tokens ORDER BY number"));
  absl::Status read = query.ForEach([&] { tokens.push_back(ReadToken(query)); });
  if (!read.ok()) return read;
  return tokens;
}

absl::StatusOr<TokenRecord> SqliteStore::RevokeToken(const std::string& id, Timestamp now) {
  return Write([&](Database& database) -> absl::StatusOr<TokenRecord> {
    absl::Status updated =
        database.Query("UPDATE tokens SET revoked_micros = ?2 WHERE id = ?1 AND revoked_micros = 0", id, now)
            .Run();
    if (!updated.ok()) return updated;
    return FindToken(database, id);
  });
}

absl::Status SqliteStore::AddAuditEntries(const std::vector<AuditRecord>& entries, int64_t keep) {
  return Write([&](Database& database) -> absl::Status {
    // Finding what is too old takes time, so it is done now and then only.
    const int64_t interval = std::max<int64_t>(keep / 100, 1);
    bool trim = false;
    for (const AuditRecord& entry : entries) {
      absl::Status added =
          database
              .Query(
                  "INSERT INTO audit (time_micros, principal, role, peer, method, subject, outcome, refused) "
                  "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
                  entry.time, entry.principal, entry.role, entry.peer, entry.method, entry.subject,
                  entry.outcome, entry.outcome == "OK" ? 0 : 1)
              .Run();
      if (!added.ok()) return added;
      trim = trim || database.last_row_number() % interval == 0;
    }
    for (int refused = 0; trim && refused <= 1; ++refused) {
      absl::Status trimmed =
          database
              .Query(
                  "DELETE FROM audit WHERE refused = ?1 AND number <= (SELECT number FROM audit WHERE "
                  "refused = ?1 ORDER BY number DESC LIMIT 1 OFFSET ?2)",
                  refused, keep)
              .Run();
      if (!trimmed.ok()) return trimmed;
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<AuditPage> SqliteStore::ListAuditEntries(int page_size, const std::string& page_token) {
  if (page_size < 0) return absl::InvalidArgumentError("page_size is negative");
  const int count = page_size == 0 ? 50 : std::min(page_size, 1000);
  int64_t before = INT64_MAX;
  if (!page_token.empty() && (!absl::SimpleAtoi(page_token, &before) || before < 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", page_token, "' is not a page token of an earlier answer"));
  }
  Reader reader(*this);
  AuditPage page;
  bool more = false;
  Statement query = reader->Query(
      "SELECT number, time_micros, principal, role, peer, method, subject, outcome FROM audit "
      "WHERE number < ?1 ORDER BY number DESC LIMIT ?2",
      before, count + 1);
  absl::Status read = query.ForEach([&] {
    if (static_cast<int>(page.entries.size()) == count) {
      more = true;
      return;
    }
    page.entries.push_back(AuditRecord{.number = query.Int(0),
                                       .time = query.Time(1),
                                       .principal = query.Text(2),
                                       .role = query.Text(3),
                                       .peer = query.Text(4),
                                       .method = query.Text(5),
                                       .subject = query.Text(6),
                                       .outcome = query.Text(7)});
  });
  if (!read.ok()) return read;
  if (more) page.next_page_token = absl::StrCat(page.entries.back().number);
  return page;
}

}  // namespace fusion
