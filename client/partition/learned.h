// A small file beside the tuner's database keeps what runs of a program learned about its loops. It is read
// and written without the tuner.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "client/partition/episode.h"
#include "client/partition/loop_tuner.h"

namespace fusion {

// 0: not known.
struct LearnedLoop {
  // Seconds of one instruction of a call's work, in each way to run it. That of the device is without copies.
  double one_thread = 0, threads = 0, device = 0;
  EpisodeHistory episodes;       // that began with the loop
  double device_saved = 0;       // seconds, by all calls of the process
  std::optional<LoopPlan> plan;  // by the tuner

  bool operator==(const LearnedLoop&) const = default;
};

struct LearnedKey {
  LoopKey loop;
  // The shape is a hash of all that the compiler says of the loop, so that an edited program does not take
  // another loop's line.
  uint64_t shape = 0;

  auto operator<=>(const LearnedKey&) const = default;
};

// The file has a line "fusion-partition 1", then one for each loop and class of sizes (size_class.h), the
// oldest first:
//   PLACE FUNCTION SHAPE CLASS ONE_THREAD THREADS DEVICE SAVING COPIES CALLS DEVICE_SAVED
//       SHARE CHUNKS THREADS BLOCK_X BLOCK_Y
// on one line, where SAVING, COPIES and CALLS are those of EpisodeHistory, the shape is hexadecimal, the last
// five are "-" without a plan, and what is no printable ASCII, or is a blank or %, is written as %XX. Lines
// that are not so are left out; of a file that is longer than kMostBytes or begins in another way nothing is
// read.
//
// Thread safe. Nothing of it fails: what cannot be read is not known, and what cannot be written is
// forgotten.
class Learned {
 public:
  static constexpr size_t kMostLines = 2000;
  static constexpr size_t kMostBytes = 1 << 20;

  // Reads nothing yet. "": there is no file.
  explicit Learned(std::string path);

  // Returns null where nothing is known. It is good until this object ends or the same is noted.
  const LearnedLoop* Find(const LearnedKey& key, int size_class);
  void Note(const LearnedKey& key, int size_class, const LearnedLoop& loop);
  // Writes the file where something was noted since: what was noted, and what others have written meanwhile,
  // the oldest lines left out. It waits for another process that does so for a tenth of a second at most.
  // Children of the process that made this object write nothing.
  void Save();

 private:
  using Key = std::pair<LearnedKey, int>;  // with the class

  const std::string path_;
  const int forks_;
  std::mutex mutex_;
  // mutex_ guards these fields.
  bool is_read_ = false;
  std::map<Key, LearnedLoop> loops_;
  std::set<Key> noted_;  // since the file was written
};

// Returns the path of the program that runs, "" where the system does not say it.
std::string ExecutablePath();

// Returns the file of the program, by the variables that decide where a server keeps its data
// (server/upkeep/data_directory.h): FUSION_DATA_DIR, XDG_DATA_HOME, HOME. "" without an executable.
std::string LearnedPath(const char* (*read_env)(const char*), const std::string& executable);

}  // namespace fusion
