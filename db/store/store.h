// The store keeps everything that must outlive the server process. It has seven parts, each an interface of
// its own: code that needs one part takes that. There is one implementation, SQLite (OpenSqliteStore);
// tests/unit/store_conformance says what any must do.
//
// Every call that changes something is one transaction: when it returns OK the change is on the disk, when it
// returns an error nothing changed. Time comes from the caller; the store reads no clock.
//
// Thread safety: all calls may be made from any thread. Changes that wait at the same time go to the disk
// together, each undone alone when it fails; readers run beside them.
//
// Statuses of all calls, besides those said at each: RESOURCE_EXHAUSTED (disk full, or the size limit
// reached), DATA_LOSS (the file is damaged, or a blob does not match its digest), UNAVAILABLE (locked by
// another process for longer than the busy timeout), PERMISSION_DENIED (the file cannot be written), INTERNAL
// (other errors of the disk).
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/store/build_store.h"
#include "db/store/identity_store.h"
#include "db/store/job_store.h"
#include "db/store/measurement_store.h"
#include "db/store/records.h"
#include "db/store/task_store.h"
#include "db/store/tuning_store.h"
#include "db/store/worker_store.h"

namespace fusion {

class Store : public JobStore,
              public TaskStore,
              public WorkerStore,
              public BuildStore,
              public MeasurementStore,
              public TuningStore,
              public IdentityStore {
 public:
  // Counts what there is, in a time that does not grow with what has ended.
  virtual absl::StatusOr<StoreStatistics> Statistics() = 0;

  // Writes a consistent copy to `path`, which becomes complete in one step, while the store stays in use.
  // ALREADY_EXISTS: the path is taken.
  virtual absl::Status Backup(const std::string& path) = 0;
  // Reads the whole file. DATA_LOSS says what is damaged.
  virtual absl::Status CheckIntegrity() = 0;
  // Moves the write-ahead log into the file once it has StoreOptions::checkpoint_pages; changes wait for the
  // last bit of that alone. One thread calls this several times a second; where none does, the log grows to
  // 256 MiB, and changes wait for all of it.
  virtual absl::Status Checkpoint() = 0;
};

struct StoreOptions {
  int readers = 3;  // reading connections
  std::chrono::milliseconds busy_timeout{5000};
  // Holds <path>.lock as long as the store is open, so that two servers never run one queue. The lock ends
  // with the process, however it ends.
  bool exclusive = true;
  int64_t max_bytes = 0;        // of the file; 0: as large as the disk allows
  int checkpoint_pages = 8192;  // of 4 KiB
  RetryPolicy retry;
  TuningRetention tuning;
};

// Opens or creates the file and brings its schema up to date; before a schema is changed the file is copied
// to <path>.v<old version>.backup. The folder must exist. UNAVAILABLE: another process holds the store.
// FAILED_PRECONDITION: a newer version of the program, or another program, wrote the file. DATA_LOSS: the
// file is no database, or it is damaged; one that was not closed in order is read whole to find that out.
// INVALID_ARGUMENT: ":memory:", which is no file.
absl::StatusOr<std::unique_ptr<Store>> OpenSqliteStore(const std::string& path,
                                                       const StoreOptions& options = {});

}  // namespace fusion
