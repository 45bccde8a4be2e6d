// Online tuning. Rules for all calls: db/store/store.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/store/records.h"

namespace fusion {

class TuningStore {
 public:
  virtual ~TuningStore() = default;

  // Notes that a search begins: adds the tuning of tuning.key, or, if there is one, leaves all of it as it is
  // but for loads + 1. With `replace` the tuning then gets the declaration, strategy and defaults given, a
  // new generation and no best. Returns the tuning as it now is.
  virtual absl::StatusOr<TuningRecord> OpenTuning(const TuningRecord& tuning, bool replace,
                                                  Timestamp now) = 0;
  // NOT_FOUND.
  virtual absl::StatusOr<TuningRecord> GetTuning(const std::string& id) = 0;
  virtual absl::StatusOr<std::optional<TuningRecord>> FindTuning(const TuningKey& key) = 0;
  // Returns the tunings of one program ("": of all), the newest report first; at most page_size (1 to 1000;
  // 0: 100). INVALID_ARGUMENT: `page_token` is not from an earlier page.
  virtual absl::StatusOr<TuningPage> ListTunings(const std::string& program, int page_size,
                                                 const std::string& page_token) = 0;
  // Returns the tunings of a program's section, for any device class and context, that have a best; at most
  // limit.
  virtual absl::StatusOr<std::vector<TuningRecord>> TuningsOfSection(const std::string& program,
                                                                     const std::string& section,
                                                                     int limit) = 0;
  // Returns the configurations of one generation, at most limit: the smallest mean first, or the largest;
  // those that only failed come last.
  virtual absl::StatusOr<std::vector<TuningConfigurationRecord>> TuningConfigurations(int64_t tuning,
                                                                                      int64_t generation,
                                                                                      bool largest_first,
                                                                                      int limit) = 0;
  virtual absl::StatusOr<std::vector<TuningConvergenceRecord>> TuningConvergence(int64_t tuning,
                                                                                 int64_t generation) = 0;
  // Stores in one transaction the reports of every batch, their sums in the statistics, and the last sequence
  // of each process. A batch whose sequence is not above the last one of its process changes nothing. Takes a
  // time that does not grow with what is stored.
  virtual absl::Status CommitTunings(const std::vector<TuningBatch>& batches,
                                     const std::vector<TuningProgressUpdate>& progress, Timestamp now) = 0;
  // Returns the sequence of the last batch of the process that is stored; 0: none.
  virtual absl::StatusOr<int64_t> TuningSequence(const std::string& process) = 0;
  // Begins a new generation without a best; the sums begin anew, the reports stay. NOT_FOUND. Returns the
  // tuning as it now is.
  virtual absl::StatusOr<TuningRecord> ResetTuning(const std::string& id) = 0;
  // Returns the oldest reports first, at most page_size (1 to 10000; 0: 1000) of them. INVALID_ARGUMENT:
  // `page_token` is not from an earlier page.
  virtual absl::StatusOr<TuningReportPage> ListTuningReports(int64_t tuning, int page_size,
                                                             const std::string& page_token) = 0;
};

}  // namespace fusion
