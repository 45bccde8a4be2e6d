#include "db/store/group_commit.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <filesystem>
#include <latch>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/eventually.h"

namespace fusion {
namespace {

class GroupCommitTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "fusion_group_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    auto database =
        Database::Open(folder_ + "/group.db", Database::Mode::kReadWrite, std::chrono::milliseconds(1000));
    ASSERT_TRUE(database.ok()) << database.status();
    database_ = *std::move(database);
    ASSERT_TRUE(database_->Execute("PRAGMA journal_mode = WAL").ok());
    ASSERT_TRUE(database_->Execute("CREATE TABLE numbers (number INTEGER PRIMARY KEY) STRICT").ok());
    writes_.Open(database_.get());
  }
  void TearDown() override {
    database_.reset();
    std::filesystem::remove_all(folder_);
  }
  static absl::Status Insert(Database& database, int number) {
    return database.Query("INSERT INTO numbers (number) VALUES (?1)", number).Run();
  }
  int64_t Count() { return database_->Integer("SELECT count(*) FROM numbers").value_or(-1); }
  // How often another connection sees the number.
  int64_t CommittedElsewhere(int number) {
    auto other =
        Database::Open(folder_ + "/group.db", Database::Mode::kReadOnly, std::chrono::milliseconds(1000));
    if (!other.ok()) return -1;
    return (*other)
        ->Integer(absl::StrCat("SELECT count(*) FROM numbers WHERE number = ", number))
        .value_or(-1);
  }
  // Runs the changes at once, so that all but the first are one group: the first waits until the others have
  // come.
  std::vector<absl::Status> RunTogether(const std::vector<GroupCommit::Change>& changes) {
    std::latch begun(1);
    std::atomic<bool> go = false;
    std::thread first([&] {
      EXPECT_TRUE(writes_
                      .Run([&](Database&) {
                        begun.count_down();
                        go.wait(false);
                        return absl::OkStatus();
                      })
                      .ok());
    });
    begun.wait();
    std::vector<absl::Status> statuses(changes.size());
    std::vector<std::thread> threads;
    for (size_t i = 0; i < changes.size(); ++i)
      threads.emplace_back([&, i] { statuses[i] = writes_.Run(changes[i]); });
    EXPECT_TRUE(Eventually([&] { return writes_.InLine() == changes.size(); }));
    go = true;
    go.notify_all();
    first.join();
    for (std::thread& thread : threads) thread.join();
    return statuses;
  }

  std::string folder_;
  std::unique_ptr<Database> database_;
  GroupCommit writes_;
};

TEST_F(GroupCommitTest, EveryChangeOfManyThreadsIsKept) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i)
        EXPECT_TRUE(writes_.Run([&](Database& database) { return Insert(database, 50 * t + i); }).ok());
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Count(), 400);
}

TEST_F(GroupCommitTest, AChangeThatFailsIsUndoneAlone) {
  const auto insert = [](int number) {
    return [number](Database& database) { return Insert(database, number); };
  };
  const GroupCommit::Change half = [](Database& database) {
    if (absl::Status status = Insert(database, 100); !status.ok()) return status;
    return absl::InvalidArgumentError("on second thoughts, no");
  };
  const std::vector<absl::Status> statuses = RunTogether({insert(1), half, insert(2), insert(1), insert(3)});
  EXPECT_TRUE(absl::IsInvalidArgument(statuses[1]));
  EXPECT_TRUE(statuses[2].ok() && statuses[4].ok());
  EXPECT_NE(statuses[0].ok(), statuses[3].ok()) << "one of the two that insert the same number";
  EXPECT_EQ(Count(), 3);
  EXPECT_EQ(database_->Integer("SELECT count(*) FROM numbers WHERE number = 100").value_or(-1), 0);
}

TEST_F(GroupCommitTest, AChangeThatUndoesTheWholeTransactionTakesNoOthersAlong) {
  // As a full disk does it.
  const GroupCommit::Change full = [](Database& database) {
    database.Query("ROLLBACK").Run().IgnoreError();
    return absl::ResourceExhaustedError("the disk is full");
  };
  std::vector<GroupCommit::Change> changes;
  for (int i = 0; i < 6; ++i) changes.push_back([i](Database& database) { return Insert(database, i); });
  changes.insert(changes.begin() + 3, full);
  const std::vector<absl::Status> statuses = RunTogether(changes);
  for (size_t i = 0; i < statuses.size(); ++i)
    EXPECT_EQ(statuses[i].code(), i == 3 ? absl::StatusCode::kResourceExhausted : absl::StatusCode::kOk)
        << statuses[i];
  EXPECT_EQ(Count(), 6);
}

TEST_F(GroupCommitTest, AnUrgentChangeWaitsForOneOtherAndEndsTheTransaction) {
  // A transaction with many changes; while its second one is made, an urgent one comes.
  std::latch second(1);
  std::vector<int> order;  // written by whoever commits
  std::thread urgent;
  std::vector<GroupCommit::Change> changes;
  for (int i = 0; i < 8; ++i)
    changes.push_back([&, i](Database& database) {
      order.push_back(i);
      if (order.size() == 2) {
        second.count_down();
        EXPECT_TRUE(Eventually([&] { return writes_.InLine() == changes.size() - 2 + 1; }));
      }
      if (order.size() > 3) {
        // A later transaction: the urgent change has been committed, whether or not its thread has been
        // woken.
        EXPECT_EQ(CommittedElsewhere(100), 1) << "after " << order.size();
      }
      return Insert(database, i);
    });
  urgent = std::thread([&] {
    second.wait();
    EXPECT_TRUE(writes_
                    .Run(
                        [&](Database& database) {
                          order.push_back(100);
                          return Insert(database, 100);
                        },
                        Urgency::kUrgent)
                    .ok());
  });
  for (const absl::Status& status : RunTogether(changes)) EXPECT_TRUE(status.ok()) << status;
  urgent.join();
  ASSERT_EQ(order.size(), 9u);
  EXPECT_EQ(order[2], 100);
  EXPECT_EQ(Count(), 9);
}

TEST_F(GroupCommitTest, AChangeThatFailsBeforeItChangesAnythingCostsTheOthersNothing) {
  std::atomic<int> runs = 0;
  std::vector<GroupCommit::Change> changes;
  for (int i = 0; i < 6; ++i)
    changes.push_back([&runs, i](Database& database) {
      ++runs;
      return i == 2 ? absl::FailedPreconditionError("it has ended") : Insert(database, i);
    });
  const std::vector<absl::Status> statuses = RunTogether(changes);
  for (int i = 0; i < 6; ++i)
    EXPECT_EQ(statuses[i].code(), i == 2 ? absl::StatusCode::kFailedPrecondition : absl::StatusCode::kOk)
        << statuses[i];
  EXPECT_EQ(runs, 6) << "each once";
  EXPECT_EQ(Count(), 5);
}

TEST_F(GroupCommitTest, WorkBetweenTransactionsIsInNone) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 30; ++i) {
        if (t == 0) {
          EXPECT_TRUE(writes_
                          .RunBetween([](Database& database) {
                            EXPECT_FALSE(database.in_transaction());
                            return absl::OkStatus();
                          })
                          .ok());
        } else {
          const Urgency urgency = t == 1 ? Urgency::kUrgent : Urgency::kBulk;
          EXPECT_TRUE(
              writes_.Run([&](Database& database) { return Insert(database, 100 * t + i); }, urgency).ok());
        }
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Count(), 150);
}

}  // namespace
}  // namespace fusion
