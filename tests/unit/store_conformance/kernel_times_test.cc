#include <gmock/gmock.h>

#include <thread>
#include <vector>

#include "tests/unit/store_conformance/store_conformance.h"

namespace fusion {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class KernelTimesTest : public StoreConformanceTest {
 protected:
  const KernelTimesKey key_{.device_class = "H200", .cache = "COLD", .toolkit = "13.0"};

  void Put(const KernelTimesKey& key, const std::string& family, const std::string& sizes,
           const std::string& variant, const std::string& content, int64_t seconds, int64_t most = 100) {
    const auto set = [&](std::vector<KernelTimeRecord>* kernels) { (*kernels)[0].content = content; };
    EXPECT_TRUE(store_->UpdateKernelTimes(key, {{family, sizes, variant, ""}}, set, most, At(seconds)).ok());
  }
  // Sizes, variants and contents.
  std::vector<std::string> Get(const KernelTimesKey& key, const std::string& family, int limit = 100) {
    auto kernels = store_->KernelTimes(key, family, limit);
    EXPECT_TRUE(kernels.ok()) << kernels.status();
    std::vector<std::string> texts;
    for (const KernelTimeRecord& kernel : *kernels) {
      EXPECT_EQ(kernel.family, family);
      texts.push_back(kernel.sizes + "|" + kernel.variant + "|" + kernel.content);
    }
    return texts;
  }
};

TEST_P(KernelTimesTest, AreOfTheirDeviceCacheAndToolkit) {
  EXPECT_THAT(*store_->KernelFamilies(key_), IsEmpty());
  Put(key_, "f", "8", "a", std::string("\0x", 2), 1);
  Put(key_, "f", "8", "b", "y", 2);
  Put(key_, "f", "9", "a", "z", 3);
  Put(key_, "e", "8", "a", "w", 1);
  for (int field = 0; field < 3; ++field) {
    KernelTimesKey other = key_;
    std::string* const fields[] = {&other.device_class, &other.cache, &other.toolkit};
    *fields[field] = "another";
    EXPECT_THAT(*store_->KernelFamilies(other), IsEmpty());
    EXPECT_THAT(Get(other, "f"), IsEmpty());
    Put(other, "f", "8", "a", "not mine", 9);
  }
  Reopen();
  EXPECT_THAT(*store_->KernelFamilies(key_), ElementsAre("e", "f"));
  // Newest first.
  EXPECT_THAT(Get(key_, "f"), ElementsAre("9|a|z", "8|b|y", std::string("8|a|\0x", 6)));
  EXPECT_THAT(Get(key_, "f", 1), ElementsAre("9|a|z"));
  EXPECT_THAT(Get(key_, "none"), IsEmpty());
}

TEST_P(KernelTimesTest, ChangesSeeWhatIsThereAndLeaveOutWhatIsEmpty) {
  Put(key_, "f", "8", "a", "1", 1);
  std::vector<std::string> seen;
  ASSERT_TRUE(store_
                  ->UpdateKernelTimes(
                      key_, {{"f", "8", "a", "ignored"}, {"f", "8", "b", ""}, {"f", "8", "c", ""}},
                      [&](std::vector<KernelTimeRecord>* kernels) {
                        seen.clear();
                        for (KernelTimeRecord& kernel : *kernels) seen.push_back(kernel.content);
                        (*kernels)[0].content += "2";
                        (*kernels)[1].content = "new";
                      },
                      100, At(2))
                  .ok());
  EXPECT_THAT(seen, ElementsAre("1", "", ""));
  EXPECT_THAT(Get(key_, "f"), ElementsAre("8|a|12", "8|b|new"));
}

TEST_P(KernelTimesTest, TheOldestGo) {
  KernelTimesKey other = key_;
  other.toolkit = "12.8";
  Put(other, "f", "8", "old", "x", 1);
  for (int i = 0; i < 5; ++i) Put(key_, "f", "8", std::to_string(i), "x", 10 + i);
  Put(key_, "f", "8", "0", "again", 20, 4);
  EXPECT_THAT(Get(other, "f"), IsEmpty());
  EXPECT_THAT(Get(key_, "f"), ElementsAre("8|0|again", "8|4|x", "8|3|x", "8|2|x"));
}

TEST_P(KernelTimesTest, ChangesOfThreadsComeOneAfterTheOther) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 25; ++i)
        EXPECT_TRUE(store_
                        ->UpdateKernelTimes(
                            key_, {{"f", "8", "a", ""}},
                            [](std::vector<KernelTimeRecord>* kernels) { (*kernels)[0].content += "x"; }, 100,
                            At(1))
                        .ok());
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(Get(key_, "f"), ElementsAre("8|a|" + std::string(100, 'x')));
}

FOR_EVERY_STORE(KernelTimesTest);

}  // namespace
}  // namespace fusion
