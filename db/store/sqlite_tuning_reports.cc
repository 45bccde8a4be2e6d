// Reports of running programs. Each counts once, in the transaction that notes the sequence of its batch.
#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "db/store/sqlite_store.h"

namespace fusion {
namespace {

// Sums stay within what a row can hold, whatever programs report: one report that could not be written would
// keep all others of its group from the disk.
constexpr double kGreatest = std::numeric_limits<double>::max();
constexpr int64_t kMostRuns = int64_t{1} << 53;

double Bounded(double value) { return std::clamp(value, -kGreatest, kGreatest); }
int64_t AddRunCounts(int64_t a, int64_t b) {
  return std::min(a, kMostRuns) + std::min(b, kMostRuns - std::min(a, kMostRuns));
}

// Adds runs of one configuration to others of it (Chan, Golub, LeVeque 1983).
void Merge(const TuningConfigurationRecord& more, TuningConfigurationRecord* sum) {
  sum->failures = AddRunCounts(sum->failures, more.failures);
  if (more.count == 0) return;
  if (sum->count == 0) {
    sum->minimum = more.minimum;
  } else {
    sum->minimum = std::min(sum->minimum, more.minimum);
  }
  const double before = static_cast<double>(sum->count), added = static_cast<double>(more.count);
  const double difference = more.mean - sum->mean;
  const double share = added / (before + added);
  // Not below the smallest, where one mean is nothing beside the other.
  sum->mean = std::max(sum->minimum, sum->mean + difference * share);
  sum->squared_deviations = Bounded(sum->squared_deviations + more.squared_deviations +
                                    Bounded(difference * difference) * (before * share));
  sum->count = AddRunCounts(sum->count, more.count);
}

// The reports of a group change a tuning by these sums.
struct Sums {
  int64_t generation = 0;  // the newest
  int64_t last_number = 0;
  int64_t new_configurations = 0;  // of that generation
  int64_t runs = 0, failures = 0;
  double exploration_excess = 0, total_value = 0;
  Timestamp reported{};
};

// One group of batches on its way into the database.
class ReportWriter {
 public:
  ReportWriter(Database& database, const TuningRetention& retention)
      : database_(database), retention_(retention) {}

  absl::Status Add(const TuningBatch& batch, Timestamp now) {
    FUSION_ASSIGN_OR_RETURN(int64_t process, Advance(batch, now));
    if (process == 0) return absl::OkStatus();
    for (const TuningReportRecord& report : batch.reports) FUSION_RETURN_IF_ERROR(AddReport(report, process));
    return absl::OkStatus();
  }

  absl::Status Finish() {
    for (const auto& [key, runs] : configurations_) {
      const auto& [tuning, generation, configuration] = key;
      FUSION_ASSIGN_OR_RETURN(bool added, AddRuns(tuning, generation, runs));
      Sums& sums = sums_[tuning];
      if (added && generation == sums.generation) ++sums.new_configurations;
    }
    for (const auto& [tuning, sums] : sums_) FUSION_RETURN_IF_ERROR(AddSums(tuning, sums));
    return absl::OkStatus();
  }

 private:
  // Notes the sequence of the batch. The number of the process; 0: the batch was here before.
  absl::StatusOr<int64_t> Advance(const TuningBatch& batch, Timestamp now) {
    if (batch.sequence <= 0) return absl::InvalidArgumentError("a batch has no sequence");
    int64_t number = 0;
    {
      Statement query = database_.Query(
          "SELECT number, last_sequence FROM tuning_processes WHERE process = ?1", batch.process);
      FUSION_ASSIGN_OR_RETURN(bool row, query.Step());
      if (row) {
        if (query.Int(1) >= batch.sequence) return 0;
        number = query.Int(0);
      }
    }
    if (number != 0) {
      absl::Status updated =
          database_
              .Query("UPDATE tuning_processes SET last_sequence = ?2, reported_micros = ?3 WHERE number = ?1",
                     number, batch.sequence, now)
              .Run();
      if (!updated.ok()) return updated;
      return number;
    }
    // A process comes as seldom as one must go.
    absl::Status changed =
        database_.Query("DELETE FROM tuning_processes WHERE reported_micros < ?1", now - retention_.processes)
            .Run();
    if (changed.ok())
      changed = database_
                    .Query(
                        "INSERT INTO tuning_processes (process, last_sequence, reported_micros) VALUES (?1, "
                        "?2, ?3)",
                        batch.process, batch.sequence, now)
                    .Run();
    if (!changed.ok()) return changed;
    return database_.last_row_number();
  }

  absl::Status AddReport(const TuningReportRecord& report, int64_t process) {
    auto [found, first] = sums_.try_emplace(report.tuning);
    Sums& sums = found->second;
    if (first) {
      Statement query =
          database_.Query("SELECT reports, reported_micros FROM tunings WHERE number = ?1", report.tuning);
      FUSION_ASSIGN_OR_RETURN(bool row, query.Step());
      if (!row)
        return absl::NotFoundError(absl::StrCat("there is no tuning with the number ", report.tuning));
      sums.last_number = query.Int(0);
      sums.reported = query.Time(1);
    }
    const TuningConfigurationRecord& runs = report.runs;
    absl::Status inserted = database_
                                .Query(
                                    "INSERT INTO tuning_reports (tuning, number, generation, process, "
                                    "time_micros, proposal, configuration, count, "
                                    "mean, squared_deviations, minimum, failures) VALUES (?1, ?2, ?3, ?4, "
                                    "?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
                                    report.tuning, ++sums.last_number, report.generation, process,
                                    report.time, report.proposal, Bytes{runs.configuration}, runs.count,
                                    runs.mean, runs.squared_deviations, runs.minimum, runs.failures)
                                .Run();
    if (!inserted.ok()) return inserted;
    sums.generation = std::max(sums.generation, report.generation);
    sums.runs = AddRunCounts(sums.runs, runs.count);
    sums.failures = AddRunCounts(sums.failures, runs.failures);
    sums.exploration_excess = Bounded(sums.exploration_excess + report.exploration_excess);
    sums.total_value = Bounded(sums.total_value + Bounded(runs.mean * static_cast<double>(runs.count)));
    sums.reported = std::max(sums.reported, report.time);
    auto [statistics, unknown] =
        configurations_.try_emplace({report.tuning, report.generation, runs.configuration});
    if (unknown) statistics->second.configuration = runs.configuration;
    Merge(runs, &statistics->second);
    return absl::OkStatus();
  }

  // True: there was no row for the configuration.
  absl::StatusOr<bool> AddRuns(int64_t tuning, int64_t generation, const TuningConfigurationRecord& runs) {
    TuningConfigurationRecord sum{.configuration = runs.configuration};
    bool known = false;
    {
      Statement query = database_.Query(
          "SELECT count, mean, squared_deviations, minimum, failures FROM tuning_configurations WHERE tuning "
          "= ?1 AND "
          "generation = ?2 AND configuration = ?3",
          tuning, generation, Bytes{runs.configuration});
      FUSION_ASSIGN_OR_RETURN(bool row, query.Step());
      known = row;
      if (known) {
        sum.count = query.Int(0);
        sum.mean = query.Real(1);
        sum.squared_deviations = query.Real(2);
        sum.minimum = query.Real(3);
        sum.failures = query.Int(4);
      }
    }
    Merge(runs, &sum);
    absl::Status written =
        database_
            .Query(
                "INSERT OR REPLACE INTO tuning_configurations (tuning, generation, configuration, count, "
                "mean, "
                "squared_deviations, minimum, failures) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
                tuning, generation, Bytes{sum.configuration}, sum.count, sum.mean, sum.squared_deviations,
                sum.minimum, sum.failures)
            .Run();
    if (!written.ok()) return written;
    return !known;
  }

  absl::Status AddSums(int64_t tuning, const Sums& sums) {
    absl::Status updated =
        database_
            .Query(
                "UPDATE tunings SET reports = ?2, configurations = configurations + iif(generation = ?3, ?4, "
                "0), runs = min(runs + ?5, ?11), failures = min(failures + ?6, ?11), "
                "exploration_excess = max(min(exploration_excess + ?7, ?10), -?10), "
                "total_value = min(total_value + ?8, ?10), "
                "reported_micros = ?9 WHERE number = ?1",
                tuning, sums.last_number, sums.generation, sums.new_configurations, sums.runs, sums.failures,
                sums.exploration_excess, sums.total_value, sums.reported, kGreatest, kMostRuns)
            .Run();
    if (!updated.ok()) return updated;
    // A transaction deletes as many reports as come, so that none has much to do.
    if (sums.last_number <= retention_.reports) return absl::OkStatus();
    return database_
        .Query("DELETE FROM tuning_reports WHERE tuning = ?1 AND number <= ?2", tuning,
               sums.last_number - retention_.reports)
        .Run();
  }

  Database& database_;
  const TuningRetention& retention_;
  std::map<int64_t, Sums> sums_;
  // The keys are tuning, generation and configuration: one row is written for all reports of the group.
  std::map<std::tuple<int64_t, int64_t, std::string>, TuningConfigurationRecord> configurations_;
};

absl::Status SetProgress(Database& database, const TuningProgressUpdate& update,
                         const TuningRetention& retention) {
  const TuningProgress& progress = update.progress;
  int64_t generation = 0;
  {
    Statement query = database.Query("SELECT generation FROM tunings WHERE number = ?1", update.tuning);
    FUSION_ASSIGN_OR_RETURN(bool row, query.Step());
    // The tuning was reset meanwhile.
    if (!row || query.Int(0) > progress.generation) return absl::OkStatus();
    generation = query.Int(0);
  }
  absl::Status status = database
                            .Query(
                                "UPDATE tunings SET configurations = iif(generation = ?2, configurations, "
                                "0), generation = ?2, best = ?3, "
                                "best_value = ?4, best_relative_error = ?5, phase = ?6, provenance = ?7, "
                                "provenance_tuning = ?8, drifts = ?9, "
                                "evaluations = ?10 WHERE number = ?1",
                                update.tuning, progress.generation, Bytes{progress.best}, progress.best_value,
                                progress.best_relative_error, progress.phase, progress.provenance,
                                progress.provenance_tuning, progress.drifts, progress.evaluations)
                            .Run();
  if (status.ok() && update.reset)
    status = database
                 .Query(
                     "UPDATE tunings SET runs = 0, failures = 0, exploration_excess = 0, total_value = 0 "
                     "WHERE number = ?1",
                     update.tuning)
                 .Run();
  for (const TuningConvergenceRecord& point : update.convergence) {
    if (!status.ok()) return status;
    status = database
                 .Query(
                     "INSERT OR REPLACE INTO tuning_convergence (tuning, generation, evaluations, "
                     "configuration, value) "
                     "VALUES (?1, ?2, ?3, ?4, ?5)",
                     update.tuning, progress.generation, point.evaluations, Bytes{point.configuration},
                     point.value)
                 .Run();
  }
  if (!status.ok() || generation == progress.generation) return status;
  status = database
               .Query("DELETE FROM tuning_configurations WHERE tuning = ?1 AND generation < ?2",
                      update.tuning, progress.generation - retention.generations)
               .Run();
  if (!status.ok()) return status;
  return database
      .Query("DELETE FROM tuning_convergence WHERE tuning = ?1 AND generation < ?2", update.tuning,
             progress.generation - retention.generations)
      .Run();
}

}  // namespace

absl::Status SqliteStore::CommitTunings(const std::vector<TuningBatch>& batches,
                                        const std::vector<TuningProgressUpdate>& progress, Timestamp now) {
  return Write([&](Database& database) -> absl::Status {
    // Progress first: reports of a new generation then find it in force.
    for (const TuningProgressUpdate& update : progress)
      FUSION_RETURN_IF_ERROR(SetProgress(database, update, options_.tuning));
    ReportWriter writer(database, options_.tuning);
    for (const TuningBatch& batch : batches) FUSION_RETURN_IF_ERROR(writer.Add(batch, now));
    return writer.Finish();
  });
}

absl::StatusOr<int64_t> SqliteStore::TuningSequence(const std::string& process) {
  Reader reader(*this);
  Statement query = reader->Query("SELECT last_sequence FROM tuning_processes WHERE process = ?1", process);
  absl::StatusOr<bool> row = query.Step();
  if (!row.ok()) return row.status();
  return *row ? query.Int(0) : 0;
}

absl::StatusOr<TuningReportPage> SqliteStore::ListTuningReports(int64_t tuning, int page_size,
                                                                const std::string& page_token) {
  if (page_size < 0) return absl::InvalidArgumentError("page_size is negative");
  const int count = page_size == 0 ? 1000 : std::min(page_size, 10000);
  int64_t after = 0;
  if (!page_token.empty() && (!absl::SimpleAtoi(page_token, &after) || after < 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", page_token, "' is not a page token of an earlier answer"));
  }
  Reader reader(*this);
  Statement query = reader->Query(
      "SELECT r.number, generation, coalesce(p.process, ''), time_micros, proposal, configuration, count, "
      "mean, "
      "squared_deviations, minimum, failures FROM tuning_reports r LEFT JOIN tuning_processes p ON p.number "
      "= r.process "
      "WHERE tuning = ?1 AND r.number > ?2 ORDER BY r.number LIMIT ?3",
      tuning, after, count + 1);
  TuningReportPage page;
  bool more = false;
  absl::Status read = query.ForEach([&] {
    if (static_cast<int>(page.reports.size()) == count) {
      more = true;
      return;
    }
    page.reports.push_back(
        {.tuning = tuning,
         .number = query.Int(0),
         .generation = query.Int(1),
         .process = query.Text(2),
         .time = query.Time(3),
         .proposal = query.Int(4),
         .runs = {query.Text(5), query.Int(6), query.Real(7), query.Real(8), query.Real(9), query.Int(10)}});
  });
  if (!read.ok()) return read;
  if (more) page.next_page_token = absl::StrCat(page.reports.back().number);
  return page;
}

}  // namespace fusion
