#include "base/monitor/log.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <thread>

namespace fusion {
namespace {

using nlohmann::json;

json Line(const std::string& message, const LogFields& fields = {}) {
  const std::string line = JsonLogLine(1763794760.25, "info", message, fields);
  EXPECT_EQ(line.find('\n'), line.size() - 1) << "one line each";
  return json::parse(line);
}

TEST(LogTest, ALineIsAnObjectWithTimeLevelAndMessage) {
  EXPECT_EQ(Line("a \"quoted\"\nmessage"), (json{{"time", "2025-11-22T06:59:20.250000Z"},
                                                 {"level", "info"},
                                                 {"message", "a \"quoted\"\nmessage"}}));
}

TEST(LogTest, FieldsAreAddedAndInnerOnesHideOuterOnes) {
  const json line = Line("x", {{"worker", "alpha"}, {"job", "jobs/1"}, {"trace_id", ""}, {"job", "jobs/2"}});
  EXPECT_EQ(line["worker"], "alpha");
  EXPECT_EQ(line["job"], "jobs/2");
  EXPECT_FALSE(line.contains("trace_id"));
}

TEST(LogTest, FieldsCannotReplaceTheMessage) {
  EXPECT_EQ(Line("real", {{"message", "forged"}, {"level", "error"}})["message"], "real");
}

TEST(LogTest, NamesInTheMessageBecomeFields) {
  const json line = Line("tasks/0a1b: worker alpha was lost; jobs/ff goes on");
  EXPECT_EQ(line["task"], "tasks/0a1b");
  EXPECT_EQ(line["job"], "jobs/ff");
  EXPECT_EQ(Line("jobs/1 ended", {{"job", "jobs/2"}})["job"], "jobs/2");
  EXPECT_FALSE(Line("see /data/jobs/12 and subtasks/12 and jobs/ alone").contains("job"));
}

TEST(LogTest, BytesThatAreNoTextAreReplaced) {
  const std::string line = JsonLogLine(0, "warning", "caf\xe9", {{"worker", "\xff"}});
  EXPECT_TRUE(json::accept(line)) << line;
}

TEST(LogTest, ScopesNestAndBelongToTheirThread) {
  const LogScope outer("job", "jobs/1");
  {
    const LogScope task("task", "tasks/2"), trace("trace_id", "abc");
    EXPECT_EQ(CurrentLogFields(), (LogFields{{"job", "jobs/1"}, {"task", "tasks/2"}, {"trace_id", "abc"}}));
    std::thread([] { EXPECT_TRUE(CurrentLogFields().empty()); }).join();
  }
  EXPECT_EQ(CurrentLogFields(), (LogFields{{"job", "jobs/1"}}));
}

}  // namespace
}  // namespace fusion
