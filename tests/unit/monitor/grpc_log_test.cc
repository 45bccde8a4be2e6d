#include "base/monitor/grpc_log.h"

#include <gmock/gmock.h>
#include <grpc/support/log.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <sstream>

namespace fusion {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

TEST(GrpcLogTest, WhatCallersSentCannotMakeLinesOfItsOwn) {
  EXPECT_EQ(PrintableLine("key=:status value=1"), "key=:status value=1");
  EXPECT_EQ(PrintableLine("a\n[error] forged\x1b[2J\xff"), "a\\n[error] forged\\033[2J\\377");
}

TEST(GrpcLogTest, LongLinesAreCut) {
  EXPECT_EQ(PrintableLine(std::string(400, 'a')), std::string(400, 'a'));
  EXPECT_EQ(PrintableLine(std::string(401, 'a')), std::string(397, 'a') + "...");
  EXPECT_EQ(PrintableLine(std::string(150, '\n')).size(), 300);
  EXPECT_EQ(PrintableLine(std::string(250, '\n')).size(), 400);
  EXPECT_EQ(PrintableLine(std::string(80 << 20, '\1')).size(), 400);
}

TEST(GrpcLogTest, TenLinesASecondAreWritten) {
  LineLimiter limiter;
  const std::chrono::steady_clock::time_point start{std::chrono::hours(1)};
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(limiter.Take(start).write);
  for (int i = 0; i < 25; ++i) EXPECT_FALSE(limiter.Take(start + std::chrono::milliseconds(999)).write);
  const LineLimiter::Verdict next = limiter.Take(start + std::chrono::milliseconds(1000));
  EXPECT_TRUE(next.write);
  EXPECT_EQ(next.left_out, 25);
  EXPECT_EQ(limiter.Take(start + std::chrono::milliseconds(1001)).left_out, 0);
}

TEST(GrpcLogTest, LinesGoToTheLogOfTheProgram) {
  std::ostringstream text;
  const auto before = spdlog::default_logger();
  spdlog::set_default_logger(
      std::make_shared<spdlog::logger>("", std::make_shared<spdlog::sinks::ostream_sink_mt>(text)));
  gpr_set_log_verbosity(GPR_LOG_SEVERITY_ERROR);  // as grpc_init does
  RouteGrpcLog();
  gpr_set_log_verbosity(GPR_LOG_SEVERITY_INFO);  // as $GRPC_VERBOSITY does
  for (int i = 0; i < 50; ++i) gpr_log(GPR_INFO, "not shown, so not counted either");
  gpr_log(GPR_ERROR, "bad metadata: %s", "x\ny");
  gpr_set_log_verbosity(GPR_LOG_SEVERITY_ERROR);
  gpr_set_log_function(nullptr);
  spdlog::set_default_logger(before);
  EXPECT_THAT(text.str(), HasSubstr("[warning] gRPC, grpc_log_test.cc:"));
  EXPECT_THAT(text.str(), EndsWith(": bad metadata: x\\ny\n"));
}

}  // namespace
}  // namespace fusion
