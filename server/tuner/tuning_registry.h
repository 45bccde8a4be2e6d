// The tuning service without its wire: which programs are connected, what they tune, and what is known of it.
#pragma once

#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/store/tuning_store.h"
#include "fusion/v1/tuner.pb.h"
#include "server/tuner/live_tuning.h"
#include "server/tuner/program_outbox.h"
#include "server/tuner/tuner_metrics.h"
#include "server/tuner/tuning_committer.h"

namespace fusion {

struct TunerOptions {
  size_t programs = 4096;  // connected at a time
  size_t sections_of_program = 1000;
  size_t tunings = 20'000;  // in memory: sections that connected programs tune
  size_t reports_of_batch = 10'000;
  uint32_t proposals_wanted = 256;  // by one program for one section
  size_t declaration_bytes = 64 << 10;
  LiveTuningOptions live;
};

class TuningRegistry;

// A program that is connected. Its calls come one after the other; Acknowledged and choices reach its outbox
// from any thread.
class TuningProgram {
 public:
  const std::string& process() const { return process_; }
  ProgramOutbox& outbox() { return *outbox_; }
  // Batches that were taken, but are not on the disk yet.
  uint64_t unacknowledged() const;

 private:
  friend class TuningRegistry;
  struct Process;
  struct Slot;
  struct Section {
    std::shared_ptr<Slot> slot;        // null: it is not tuned
    std::shared_ptr<LiveTuning> live;  // null: it is not tuned
    std::string declaration;           // as it was declared first
    v1::Declared answer;
  };
  uint64_t number_ = 0;
  std::string process_;
  std::shared_ptr<ProgramOutbox> outbox_;
  std::shared_ptr<Process> state_;

  std::mutex mutex_;
  std::map<uint32_t, Section> sections_;  // guarded by mutex_
  uint64_t last_sequence_ = 0;            // guarded by mutex_; of this connection
  bool detached_ = false;  // guarded by mutex_; another connection has taken its place, or it has gone
};

// Thread safe.
class TuningRegistry {
 public:
  // The store, the pool (where searches run) and the metrics (null: none) outlive it. `changed` is called
  // with the name of a tuning of which there is something new on the disk; it must not block.
  TuningRegistry(TuningStore& store, boost::asio::thread_pool& pool, const TunerOptions& options,
                 TunerMetrics* metrics, std::function<void(const std::string& tuning)> changed);
  // Calls Stop().
  ~TuningRegistry();

  // ---- Programs. Connect and Declare wait for the disk; Report does not.

  // Welcomes the process. An earlier connection of the same process ends with Aborted. InvalidArgument: no
  // name, or a long one. ResourceExhausted: too many are connected. Unavailable: stopped.
  absl::StatusOr<std::shared_ptr<TuningProgram>> Connect(const v1::Hello& hello,
                                                         std::shared_ptr<ProgramOutbox> outbox);
  // Answers with Declared and, if it is tuned, a choice. What is wrong with one section is in its Declared
  // alone; an error ends the connection.
  absl::Status Declare(TuningProgram& program, const v1::DeclareSection& declare);
  // Answers a declaration that could not be read with Declared, which says why.
  absl::Status RefuseDeclaration(TuningProgram& program, uint32_t section, const absl::Status& why);
  // Takes the reports, which count once however often they come, and the demands. Reports that cannot be
  // stored are left out, and the program is told of them (ReportRefused). An error ends the connection:
  // InvalidArgument: sequences that are not 1, 2, 3 ... .
  absl::Status Report(TuningProgram& program, const v1::ReportBatch& batch);
  // The program has gone: its proposals are forgotten. What it reported stays. Harmless when repeated.
  void Disconnect(TuningProgram& program);

  // ---- For people. All wait for the disk.

  absl::StatusOr<v1::ListTuningsResponse> List(const v1::ListTuningsRequest& request);
  // This function and those below return NotFound where there is no such tuning.
  absl::StatusOr<v1::Tuning> Get(const std::string& name);
  absl::StatusOr<v1::TuningDetails> Details(const std::string& name);
  absl::StatusOr<v1::Tuning> Reset(const std::string& name);
  absl::StatusOr<v1::ListTuningReportsResponse> Reports(const v1::ListTuningReportsRequest& request);

  // Ends all connections with Unavailable; what was reported is written. The caller stops the pool after
  // that.
  void Stop();

 private:
  using Process = TuningProgram::Process;
  using Slot = TuningProgram::Slot;

  absl::StatusOr<std::shared_ptr<Process>> FindProcess(const std::string& name);
  void Detach(TuningProgram& program);
  // Returns the section as it is tuned from now on, or why it is not.
  absl::StatusOr<TuningProgram::Section> Join(TuningProgram& program,
                                              const v1::SectionDeclaration& declaration, uint32_t handle);
  absl::StatusOr<std::shared_ptr<LiveTuning>> Load(const TuningKey& key,
                                                   std::shared_ptr<const ParameterSpace> space);
  void Release(TuningProgram& program, uint32_t handle, TuningProgram::Section& section);
  absl::StatusOr<std::shared_ptr<Slot>> SlotOf(const TuningKey& key);
  void DropSlotIfUnused(const TuningKey& key);
  // The section is not tuned on this connection.
  void Refuse(TuningProgram& program, uint32_t handle, const absl::Status& why);
  // Returns the tuning of a report that can be true.
  absl::StatusOr<LiveTuning*> Believe(TuningProgram& program, const v1::TuningReport& report);
  // Gives a batch that has not come before to the disk and to the searches.
  void Take(TuningProgram& program, const v1::ReportBatch& batch);
  void OnCommitted(const std::vector<TuningBatch>& batches,
                   const std::vector<TuningProgressUpdate>& progress);
  // The details lack the convergence.
  absl::StatusOr<v1::TuningDetails> Ranked(const TuningRecord& record) const;
  // Returns the number of programs that tune it now.
  uint32_t ProgramsOf(const TuningRecord& record) const;

  TuningStore& store_;
  boost::asio::thread_pool& pool_;
  const TunerOptions options_;
  TunerMetrics* const metrics_;
  const std::function<void(const std::string&)> changed_;

  mutable std::mutex mutex_;
  // mutex_ guards these fields.
  bool stopped_ = false;
  uint64_t next_program_ = 1;
  // These processes are connected, or have batches on their way to the disk.
  std::map<std::string, std::shared_ptr<Process>> processes_;
  size_t connected_ = 0;
  std::map<TuningKey, std::shared_ptr<Slot>> slots_;
  std::map<std::string, std::weak_ptr<LiveTuning>> live_;  // by id
  std::map<int64_t, std::string> names_;                   // names of live tunings, by TuningRecord.number

  // The committer is the last field: its thread calls OnCommitted.
  std::unique_ptr<TuningCommitter> committer_;
};

}  // namespace fusion
