#include "base/monitor/trace_context.h"

#include <gtest/gtest.h>
#include <stdlib.h>

namespace fusion {
namespace {

constexpr char kGood[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

TEST(TraceContextTest, ReadsAndWrites) {
  const auto context = ParseTraceParent(kGood);
  ASSERT_TRUE(context.has_value());
  EXPECT_EQ(context->trace_id, "4bf92f3577b34da6a3ce929d0e0e4736");
  EXPECT_EQ(context->parent_id, "00f067aa0ba902b7");
  EXPECT_EQ(context->flags, "01");
  EXPECT_EQ(context->ToString(), kGood);
}

TEST(TraceContextTest, RefusesWhatTheStandardRefuses) {
  for (const std::string& text : {
           std::string(),
           std::string("00"),
           std::string("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0"),
           std::string("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x"),
           std::string("00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01"),
           std::string("00-00000000000000000000000000000000-00f067aa0ba902b7-01"),
           std::string("00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01"),
           std::string("ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
           std::string("00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
           std::string("00-4bf92f3577b34da6a3ce929d0e0e473g-00f067aa0ba902b7-01"),
           std::string("01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01x"),
       })
    EXPECT_FALSE(ParseTraceParent(text).has_value()) << text;
}

TEST(TraceContextTest, ReadsALaterVersionAsFarAsThisOneGoes) {
  const auto context = ParseTraceParent("01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00-more");
  ASSERT_TRUE(context.has_value());
  EXPECT_EQ(context->ToString(), "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00");
}

TEST(TraceContextTest, NewOnesAreValidAndDiffer) {
  const TraceContext one = NewTrace(), other = NewTrace();
  EXPECT_TRUE(ParseTraceParent(one.ToString()).has_value()) << one.ToString();
  EXPECT_NE(one.trace_id, other.trace_id);
  const TraceContext child = ChildOf(one);
  EXPECT_EQ(child.trace_id, one.trace_id);
  EXPECT_NE(child.parent_id, one.parent_id);
}

TEST(TraceContextTest, TakesTheTraceOfTheEnvironment) {
  setenv("TRACEPARENT", kGood, 1);
  EXPECT_EQ(TraceFromEnvironment().trace_id, "4bf92f3577b34da6a3ce929d0e0e4736");
  EXPECT_NE(TraceFromEnvironment().parent_id, "00f067aa0ba902b7");
  setenv("TRACEPARENT", "nonsense", 1);
  EXPECT_NE(TraceFromEnvironment().trace_id, TraceFromEnvironment().trace_id);
  unsetenv("TRACEPARENT");
  EXPECT_TRUE(ParseTraceParent(TraceFromEnvironment().ToString()).has_value());
}

}  // namespace
}  // namespace fusion
