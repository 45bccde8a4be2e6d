#include <gtest/gtest.h>
#include <sqlite3.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <random>

#include "tests/fault/long_form.h"
#include "tests/fault/storage/recording_vfs.h"
#include "tests/fault/storage/workload.h"

namespace fusion {
namespace {

namespace fs = std::filesystem;

class StorageFaultsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern =
        (fs::is_directory("/dev/shm") ? "/dev/shm/" : ::testing::TempDir()) + "fusion_storage_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  static std::unique_ptr<Store> Open(const std::string& path, absl::Status* status = nullptr) {
    absl::StatusOr<std::unique_ptr<Store>> store =
        OpenSqliteStore(path, {.readers = 1, .checkpoint_pages = 60});
    if (status != nullptr) *status = store.status();
    return store.ok() ? *std::move(store) : nullptr;
  }
  std::string folder_;
};

// The files as a disk has them that loses its power: all that was synchronised, and of what was not, what it
// happened to have written by then, in any order.
class Disk {
 public:
  void Apply(const DiskStep& step) { unsynced_[step.file].push_back(step); }
  void Sync(const std::string& file) {
    for (const DiskStep& step : unsynced_[file]) Do(files_[file], step);
    unsynced_[file].clear();
  }
  void WriteTo(const std::string& folder, std::mt19937& random) const {
    for (const auto& [name, content] : files_) Write(folder, name, content, random);
    for (const auto& [name, steps] : unsynced_)
      if (!files_.contains(name) && !steps.empty()) Write(folder, name, "", random);
  }

 private:
  static void Do(std::string& content, const DiskStep& step) {
    if (step.kind == DiskStep::Kind::kTruncate) return content.resize(step.offset);
    const size_t end = step.offset + step.data.size();
    if (content.size() < end) content.resize(end);
    content.replace(step.offset, step.data.size(), step.data);
  }
  void Write(const std::string& folder, const std::string& name, std::string content,
             std::mt19937& random) const {
    if (auto unsynced = unsynced_.find(name); unsynced != unsynced_.end())
      for (const DiskStep& step : unsynced->second) {
        const int luck = std::uniform_int_distribution<int>(0, 3)(random);
        if (luck == 0) continue;
        DiskStep torn = step;
        if (luck == 1 && torn.kind == DiskStep::Kind::kWrite && torn.data.size() > 512) torn.data.resize(512);
        Do(content, torn);
      }
    std::ofstream(folder + "/" + fs::path(name).filename().string(), std::ios::binary) << content;
  }
  std::map<std::string, std::string> files_;
  std::map<std::string, std::vector<DiskStep>> unsynced_;
};

TEST_F(StorageFaultsTest, WhatWasAcknowledgedSurvivesAPowerCutAtEverySync) {
  const int wanted = Count(200, 2000);
  // The number of steps on the disk when each thing was acknowledged, and what had been by then.
  std::vector<std::pair<int64_t, Acknowledged>> history;
  std::vector<DiskStep> steps;
  {
    RecordingVfs vfs;
    std::unique_ptr<Store> store = Open(folder_ + "/fusion.db");
    ASSERT_NE(store, nullptr);
    Acknowledged acknowledged;
    const absl::Status status = RunWorkload(*store, 1 + wanted / 10, &acknowledged,
                                            [&] { history.emplace_back(vfs.step_count(), acknowledged); });
    ASSERT_TRUE(status.ok()) << status;
    steps = vfs.Steps();
  }
  std::mt19937 random(1);
  Disk disk;
  size_t known = 0;
  int cuts = 0;
  for (size_t i = 0; i < steps.size() && cuts < wanted; ++i) {
    if (steps[i].kind != DiskStep::Kind::kSync) {
      disk.Apply(steps[i]);
      continue;
    }
    // Just before the sync, when all that it would have made safe hangs in the air, and just after it.
    for (const bool after : {false, true}) {
      if (after) disk.Sync(steps[i].file);
      const int64_t done = static_cast<int64_t>(i) + (after ? 1 : 0);
      while (known < history.size() && history[known].first <= done) ++known;
      const std::string folder = folder_ + "/cut";
      fs::remove_all(folder);
      fs::create_directory(folder);
      disk.WriteTo(folder, random);
      absl::Status opened;
      std::unique_ptr<Store> store = Open(folder + "/fusion.db", &opened);
      ASSERT_NE(store, nullptr) << "cut at step " << i << ": " << opened;
      if (known > 0) {
        ASSERT_EQ(Missing(*store, history[known - 1].second), "")
            << "cut at step " << i << (after ? ", after" : ", before");
      }
    }
    ++cuts;
  }
  TellFigure("power cuts", cuts);
  EXPECT_EQ(cuts, wanted);
  EXPECT_GT(known, history.size() / 4) << "the cuts reached into the workload";
}

TEST_F(StorageFaultsTest, AFullDiskOrAnErrorOfTheDiskIsACleanErrorAndLosesNothing) {
  struct Fault {
    const char* name;
    int code;
    DiskStep::Kind kind;
  };
  const Fault faults[] = {{"disk full", SQLITE_FULL, DiskStep::Kind::kWrite},
                          {"error on writing", SQLITE_IOERR_WRITE, DiskStep::Kind::kWrite},
                          {"error on synchronising", SQLITE_IOERR_FSYNC, DiskStep::Kind::kSync}};
  const int times = Count(25, 100);
  for (const Fault& fault : faults) {
    int errors = 0, recovered = 0;
    for (int nth = 0; nth < times; ++nth) {
      const std::string folder = folder_ + "/fault";
      fs::remove_all(folder);
      fs::create_directory(folder);
      RecordingVfs vfs;
      Acknowledged acknowledged;
      {
        std::unique_ptr<Store> store = Open(folder + "/fusion.db");
        ASSERT_NE(store, nullptr);
        ASSERT_TRUE(RunWorkload(*store, 2, &acknowledged).ok());
        // The disk fails from the nth step of the kind on, for as many steps as that: sometimes for good,
        // sometimes not.
        int seen = 0;
        vfs.set_fault([&, seen](const DiskStep& step) mutable {
          if (step.kind != fault.kind) return SQLITE_OK;
          ++seen;
          return seen > nth && seen <= 2 * nth + 1 ? fault.code : SQLITE_OK;
        });
        for (int round = 0; round < 12; ++round) {
          const absl::Status status = RunWorkload(*store, 1, &acknowledged);
          if (status.ok()) continue;
          ++errors;
          EXPECT_TRUE(absl::IsResourceExhausted(status) || absl::IsInternal(status))
              << fault.name << ": " << status;
        }
        vfs.set_fault(nullptr);
        // It goes on, in the same process.
        ASSERT_TRUE(RunWorkload(*store, 1, &acknowledged).ok()) << fault.name << " " << nth;
        ASSERT_EQ(Missing(*store, acknowledged), "") << fault.name << " " << nth;
      }
      std::unique_ptr<Store> again = Open(folder + "/fusion.db");
      ASSERT_NE(again, nullptr);
      ASSERT_EQ(Missing(*again, acknowledged), "") << fault.name << " " << nth << ", opened again";
      ++recovered;
    }
    TellFigure(fault.name, recovered);
    EXPECT_GT(errors, times / 2) << fault.name;
  }
}

}  // namespace
}  // namespace fusion
