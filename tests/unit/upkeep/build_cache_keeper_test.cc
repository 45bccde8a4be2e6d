#include "server/upkeep/build_cache_keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <boost/asio/thread_pool.hpp>
#include <sstream>

#include "base/temporary_directory.h"
#include "server/metrics/server_metrics.h"
#include "server/upkeep/data_directory.h"
#include "tests/eventually.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class BuildCacheKeeperTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto directory = TemporaryDirectory::Create();
    ASSERT_TRUE(directory.ok());
    directory_ = *std::move(directory);
    auto store = OpenSqliteStore(DatabasePath(directory_->path()));
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
    logger_ = spdlog::default_logger();
    spdlog::set_default_logger(
        std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log_)));
    options_.max_bytes = 250;
  }
  void TearDown() override {
    pool_.join();
    spdlog::set_default_logger(logger_);
  }
  void Put(const std::string& key, int64_t second) {
    const Timestamp made{std::chrono::seconds(second)};
    const auto digest = store_->PutBlob(key + std::string(100 - key.size(), '.'), "", made);
    ASSERT_TRUE(digest.ok()) << digest.status();
    ASSERT_TRUE(store_->PutBuild({key, "OK", *digest, "", 1, made}).ok());
  }
  bool Knows(const std::string& key) { return store_->FindBuilds({key})->size() == 1; }
  std::string TakeLog() {
    std::string log = log_.str();
    log_.str("");
    return log;
  }

  std::unique_ptr<TemporaryDirectory> directory_;
  std::unique_ptr<Store> store_;
  std::shared_ptr<spdlog::logger> logger_;
  std::ostringstream log_;
  boost::asio::thread_pool pool_{1};
  ServerMetrics metrics_;
  BuildCacheOptions options_;
};

TEST_F(BuildCacheKeeperTest, RemovesWhatIsTooMuchAndCountsIt) {
  for (int i = 1; i <= 700; ++i) Put("k" + std::to_string(i), i);
  BuildCacheKeeper keeper(*store_, pool_.get_executor(), options_, &metrics_);
  keeper.Look();
  EXPECT_EQ(metrics_.build_cache_bytes->value(), 200);
  EXPECT_EQ(metrics_.build_cache_evictions->value(), 698) << "also in several transactions";
  EXPECT_EQ(metrics_.build_cache_evicted_bytes->value(), 69800);
  EXPECT_FALSE(Knows("k698"));
  EXPECT_TRUE(Knows("k699") && Knows("k700"));
  const std::string log = TakeLog();
  EXPECT_THAT(log, HasSubstr("698 binaries (69800 bytes)"));
  EXPECT_THAT(log, Not(HasSubstr("more than")));
  EXPECT_TRUE(store_->CheckIntegrity().ok());
  keeper.Look();
  EXPECT_EQ(TakeLog(), "");
}

TEST_F(BuildCacheKeeperTest, SaysOnceThatWhatIsLeftIsInUse) {
  const std::string job = store_->CreateJob(JobRecord{}, TimeOfDay())->job.id;
  for (const char* key : {"a", "b", "c", "d"}) Put(key, key[0]);
  ASSERT_TRUE(store_->UseBuilds(job, {"a", "b", "c"}, TimeOfDay()).ok());
  BuildCacheKeeper keeper(*store_, pool_.get_executor(), options_, &metrics_);
  keeper.Look();
  std::string log = TakeLog();
  EXPECT_THAT(log, HasSubstr("1 binaries"));
  EXPECT_THAT(
      log, HasSubstr("has 300 bytes, more than the 250 of --cache-size: unfinished jobs use what is left"));
  keeper.Look();
  EXPECT_EQ(TakeLog(), "");
  EXPECT_EQ(metrics_.build_cache_bytes->value(), 300);

  JobUpdate ended;
  ended.state = JobState::kCancelled;
  ASSERT_TRUE(store_->UpdateJob(job, ended, TimeOfDay()).ok());
  keeper.Look();
  EXPECT_EQ(metrics_.build_cache_bytes->value(), 200);
  EXPECT_THAT(TakeLog(), Not(HasSubstr("more than")));
}

TEST_F(BuildCacheKeeperTest, WithoutABoundItOnlyMeasures) {
  options_.max_bytes = 0;
  for (const char* key : {"a", "b", "c"}) Put(key, key[0]);
  BuildCacheKeeper keeper(*store_, pool_.get_executor(), options_, &metrics_);
  keeper.Look();
  EXPECT_EQ(metrics_.build_cache_bytes->value(), 300);
  EXPECT_TRUE(Knows("a"));
}

TEST_F(BuildCacheKeeperTest, LooksEveryPeriodUntilItIsStopped) {
  options_.period = std::chrono::milliseconds(5);
  BuildCacheKeeper keeper(*store_, pool_.get_executor(), options_, &metrics_);
  keeper.Start();
  for (const char* key : {"a", "b", "c", "d"}) Put(key, key[0]);
  EXPECT_TRUE(Eventually([&] { return !Knows("b"); }));
  keeper.Stop();
  Put("e", 'e');
  pool_.join();  // nothing waits for a next period
  EXPECT_TRUE(Knows("c"));
}

}  // namespace
}  // namespace fusion
