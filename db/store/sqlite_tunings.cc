// Tunings: what is known of the sections of programs. Their reports are in sqlite_tuning_reports.cc.
#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/random_id.h"
#include "base/status_macros.h"
#include "db/store/sqlite_store.h"

namespace fusion {
namespace {

// In the order that ReadTuning expects. The statistics of the defaults are one row, found by its key.
constexpr char kSelectTuning[] =
    "SELECT t.number, id, program, section, device_class, context, declaration, strategy, defaults, loads, "
    "t.generation, best, "
    "best_value, best_relative_error, phase, provenance, provenance_tuning, drifts, evaluations, reports, "
    "configurations, runs, "
    "t.failures, exploration_excess, total_value, created_micros, reported_micros, coalesce(c.mean, 0.0) "
    "FROM tunings t "
    "LEFT JOIN tuning_configurations c ON c.tuning = t.number AND c.generation = t.generation AND "
    "c.configuration = t.defaults ";

TuningRecord ReadTuning(const Statement& row) {
  TuningRecord tuning;
  int column = 0;
  tuning.number = row.Int(column++);
  tuning.id = row.Text(column++);
  tuning.key.program = row.Text(column++);
  tuning.key.section = row.Text(column++);
  tuning.key.device_class = row.Text(column++);
  tuning.key.context = row.Text(column++);
  tuning.declaration = row.Text(column++);
  tuning.strategy = row.Text(column++);
  tuning.defaults = row.Text(column++);
  tuning.loads = row.Int(column++);
  TuningProgress& progress = tuning.progress;
  progress.generation = row.Int(column++);
  progress.best = row.Text(column++);
  progress.best_value = row.Real(column++);
  progress.best_relative_error = row.Real(column++);
  progress.phase = row.Text(column++);
  progress.provenance = row.Text(column++);
  progress.provenance_tuning = row.Text(column++);
  progress.drifts = row.Int(column++);
  progress.evaluations = row.Int(column++);
  tuning.reports = row.Int(column++);
  tuning.configurations = row.Int(column++);
  tuning.runs = row.Int(column++);
  tuning.failures = row.Int(column++);
  tuning.exploration_excess = row.Real(column++);
  tuning.total_value = row.Real(column++);
  tuning.created = row.Time(column++);
  tuning.reported = row.Time(column++);
  tuning.default_value = row.Real(column++);
  return tuning;
}

absl::StatusOr<std::optional<TuningRecord>> ReadOne(Statement query) {
  FUSION_ASSIGN_OR_RETURN(bool row, query.Step());
  if (!row) return std::nullopt;
  return ReadTuning(query);
}

absl::StatusOr<std::optional<TuningRecord>> FindByKey(Database& database, const TuningKey& key) {
  return ReadOne(database.Query(
      absl::StrCat(kSelectTuning,
                   "WHERE program = ?1 AND section = ?2 AND device_class = ?3 AND context = ?4"),
      key.program, key.section, key.device_class, key.context));
}

absl::StatusOr<TuningRecord> FindById(Database& database, const std::string& id) {
  FUSION_ASSIGN_OR_RETURN(std::optional<TuningRecord> tuning,
                          ReadOne(database.Query(absl::StrCat(kSelectTuning, "WHERE id = ?1"), id)));
  if (!tuning) return absl::NotFoundError(absl::StrCat("there is no tuning ", id));
  return *std::move(tuning);
}

// A new generation of the tuning, of which nothing is known.
absl::Status BeginAnew(Database& database, int64_t number) {
  return database
      .Query(
          "UPDATE tunings SET generation = generation + 1, best = ?2, best_value = 0, best_relative_error = "
          "0, "
          "phase = 'EXPLORING', provenance = 'PROVENANCE_UNSPECIFIED', provenance_tuning = '', drifts = 0, "
          "evaluations = 0, "
          "configurations = 0, runs = 0, failures = 0, exploration_excess = 0, total_value = 0 WHERE number "
          "= ?1",
          number, Bytes{""})
      .Run();
}

}  // namespace

absl::StatusOr<TuningRecord> SqliteStore::OpenTuning(const TuningRecord& tuning, bool replace,
                                                     Timestamp now) {
  return Write([&](Database& database) -> absl::StatusOr<TuningRecord> {
    FUSION_ASSIGN_OR_RETURN(std::optional<TuningRecord> known, FindByKey(database, tuning.key));
    if (!known) {
      const TuningProgress& progress = tuning.progress;
      absl::Status inserted =
          database
              .Query(
                  "INSERT INTO tunings (id, program, section, device_class, context, declaration, strategy, "
                  "defaults, loads, "
                  "generation, best, best_value, best_relative_error, phase, provenance, provenance_tuning, "
                  "drifts, evaluations, "
                  "reports, configurations, runs, failures, exploration_excess, total_value, created_micros, "
                  "reported_micros) "
                  "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 1, ?9, ?10, 0, 0, 'EXPLORING', "
                  "'PROVENANCE_UNSPECIFIED', '', 0, 0, 0, "
                  "0, 0, 0, 0, 0, ?11, ?11)",
                  tuning.id.empty() ? "tunings/" + RandomHex(2) : tuning.id, tuning.key.program,
                  tuning.key.section, tuning.key.device_class, tuning.key.context, Bytes{tuning.declaration},
                  tuning.strategy, Bytes{tuning.defaults}, progress.generation, Bytes{""}, now)
              .Run();
      if (!inserted.ok()) return inserted;
    } else {
      const int64_t number = known->number;
      FUSION_RETURN_IF_ERROR(
          database.Query("UPDATE tunings SET loads = loads + 1 WHERE number = ?1", number).Run());
      if (replace) {
        FUSION_RETURN_IF_ERROR(BeginAnew(database, number));
        absl::Status replaced =
            database
                .Query("UPDATE tunings SET declaration = ?2, strategy = ?3, defaults = ?4 WHERE number = ?1",
                       number, Bytes{tuning.declaration}, tuning.strategy, Bytes{tuning.defaults})
                .Run();
        if (!replaced.ok()) return replaced;
      }
    }
    FUSION_ASSIGN_OR_RETURN(std::optional<TuningRecord> opened, FindByKey(database, tuning.key));
    return *std::move(opened);
  });
}

absl::StatusOr<TuningRecord> SqliteStore::GetTuning(const std::string& id) {
  Reader reader(*this);
  return FindById(*reader, id);
}

absl::StatusOr<std::optional<TuningRecord>> SqliteStore::FindTuning(const TuningKey& key) {
  Reader reader(*this);
  return FindByKey(*reader, key);
}

absl::StatusOr<TuningPage> SqliteStore::ListTunings(const std::string& program, int page_size,
                                                    const std::string& page_token) {
  if (page_size < 0) return absl::InvalidArgumentError("page_size is negative");
  const int count = page_size == 0 ? 100 : std::min(page_size, 1000);
  // Where the page before ended: "<micros>.<number>".
  int64_t micros = INT64_MAX, number = INT64_MAX;
  if (!page_token.empty()) {
    const std::vector<std::string> parts = absl::StrSplit(page_token, '.');
    if (parts.size() != 2 || !absl::SimpleAtoi(parts[0], &micros) || !absl::SimpleAtoi(parts[1], &number)) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", page_token, "' is not a page token of an earlier answer"));
    }
  }
  constexpr char kEnd[] =
      "(reported_micros, t.number) < (?2, ?3) ORDER BY reported_micros DESC, t.number DESC LIMIT ?4";
  Reader reader(*this);
  Statement query = program.empty()
                        ? reader->Query(absl::StrCat(kSelectTuning, "WHERE ?1 = '' AND ", kEnd), program,
                                        micros, number, count + 1)
                        : reader->Query(absl::StrCat(kSelectTuning, "WHERE program = ?1 AND ", kEnd), program,
                                        micros, number, count + 1);
  TuningPage page;
  bool more = false;
  absl::Status read = query.ForEach([&] {
    if (static_cast<int>(page.tunings.size()) == count) {
      more = true;
    } else {
      page.tunings.push_back(ReadTuning(query));
    }
  });
  if (!read.ok()) return read;
  if (more) {
    const TuningRecord& last = page.tunings.back();
    page.next_page_token = absl::StrCat(last.reported.time_since_epoch().count(), ".", last.number);
  }
  return page;
}

absl::StatusOr<std::vector<TuningRecord>> SqliteStore::TuningsOfSection(const std::string& program,
                                                                        const std::string& section,
                                                                        int limit) {
  Reader reader(*this);
  std::vector<TuningRecord> tunings;
  Statement query = reader->Query(
      absl::StrCat(
          kSelectTuning,
          "WHERE program = ?1 AND section = ?2 AND length(best) > 0 ORDER BY device_class, context LIMIT ?3"),
      program, section, limit);
  absl::Status read = query.ForEach([&] { tunings.push_back(ReadTuning(query)); });
  if (!read.ok()) return read;
  return tunings;
}

absl::StatusOr<std::vector<TuningConfigurationRecord>> SqliteStore::TuningConfigurations(int64_t tuning,
                                                                                         int64_t generation,
                                                                                         bool largest_first,
                                                                                         int limit) {
  Reader reader(*this);
  std::vector<TuningConfigurationRecord> configurations;
  Statement query = reader->Query(
      "SELECT configuration, count, mean, squared_deviations, minimum, failures FROM tuning_configurations "
      "WHERE tuning = ?1 AND generation = ?2 ORDER BY count = 0, mean * ?3, configuration LIMIT ?4",
      tuning, generation, largest_first ? -1 : 1, limit);
  absl::Status read = query.ForEach([&] {
    configurations.push_back(
        {query.Text(0), query.Int(1), query.Real(2), query.Real(3), query.Real(4), query.Int(5)});
  });
  if (!read.ok()) return read;
  return configurations;
}

absl::StatusOr<std::vector<TuningConvergenceRecord>> SqliteStore::TuningConvergence(int64_t tuning,
                                                                                    int64_t generation) {
  Reader reader(*this);
  std::vector<TuningConvergenceRecord> points;
  Statement query = reader->Query(
      "SELECT evaluations, configuration, value FROM tuning_convergence WHERE tuning = ?1 AND generation = "
      "?2 "
      "ORDER BY evaluations",
      tuning, generation);
  absl::Status read = query.ForEach([&] { points.push_back({query.Int(0), query.Text(1), query.Real(2)}); });
  if (!read.ok()) return read;
  return points;
}

absl::StatusOr<TuningRecord> SqliteStore::ResetTuning(const std::string& id) {
  return Write([&](Database& database) -> absl::StatusOr<TuningRecord> {
    absl::StatusOr<TuningRecord> tuning = FindById(database, id);
    if (!tuning.ok()) return tuning;
    FUSION_RETURN_IF_ERROR(BeginAnew(database, tuning->number));
    return FindById(database, id);
  });
}

}  // namespace fusion
