#include "server/dispatch/claim_book.h"

#include <gtest/gtest.h>

#include <thread>

namespace fusion {
namespace {

ClaimedTask Claim(const std::string& id, int64_t fence, const std::string& worker = "w",
                  const std::string& instance = "1", int64_t number = 0) {
  return ClaimedTask{.number = number,
                     .id = id,
                     .fence = fence,
                     .key = "key of " + id,
                     .worker = worker,
                     .instance = instance};
}

TEST(ClaimBookTest, SaysWhoHoldsWhatInTheOrderOfQueueing) {
  ClaimBook book;
  book.Claimed(Claim("tasks/a", 1, "w", "1", 2));
  book.Claimed(Claim("tasks/b", 4, "w", "1", 1));
  book.Claimed(Claim("tasks/c", 1, "w", "0", 3));
  book.Claimed(Claim("tasks/d", 1, "v", "1", 4));
  const std::vector<ClaimedTask> held = book.HeldBy("w", "1");
  ASSERT_EQ(held.size(), 2u);
  EXPECT_EQ(held[0].id, "tasks/b");
  EXPECT_EQ(held[1].id, "tasks/a");
  EXPECT_EQ(book.Find("w", "tasks/c", 1)->instance, "0") << "of another process of the worker";
  EXPECT_EQ(book.Find("w", "tasks/b", 4)->key, "key of tasks/b");
  EXPECT_FALSE(book.Find("w", "tasks/b", 3).has_value());
  EXPECT_FALSE(book.Find("v", "tasks/b", 4).has_value());
}

TEST(ClaimBookTest, AnEndThatIsNotedBeforeItsClaimCounts) {
  ClaimBook book;
  book.Ended("w", "tasks/a", 1);
  book.Claimed(Claim("tasks/a", 1));
  EXPECT_TRUE(book.HeldBy("w", "1").empty());
  // And once: the next claim of the task is another.
  book.Claimed(Claim("tasks/a", 2));
  EXPECT_EQ(book.HeldBy("w", "1").size(), 1u);
  book.Ended("w", "tasks/a", 2);
  EXPECT_TRUE(book.HeldBy("w", "1").empty());
}

TEST(ClaimBookTest, AnOlderClaimEndsBesideANewerOne) {
  ClaimBook book;
  book.Claimed(Claim("tasks/a", 1, "w"));
  book.Claimed(Claim("tasks/a", 2, "v"));
  book.Ended("w", "tasks/a", 1);
  EXPECT_TRUE(book.HeldBy("w", "1").empty());
  EXPECT_EQ(book.HeldBy("v", "1").size(), 1u);
}

TEST(ClaimBookTest, ThreadsThatClaimAndEndInAnyOrderLeaveNothing) {
  ClaimBook book;
  std::vector<std::thread> threads;
  for (const bool claims : {true, false})
    threads.emplace_back([&, claims] {
      for (int i = 0; i < 2000; ++i) {
        const std::string id = "tasks/" + std::to_string(i);
        if (claims)
          book.Claimed(Claim(id, 1));
        else
          book.Ended("w", id, 1);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(book.HeldBy("w", "1").empty());
}

}  // namespace
}  // namespace fusion
