#include "server/optimize/measurement_remarks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace fusion {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

void Add(bool steady, double low, double median, double spread, v1::JobResult* result) {
  v1::Candidate* candidate = result->add_candidates();
  candidate->set_outcome(v1::OK);
  candidate->set_rank(result->candidates_size());
  candidate->set_steady(steady);
  v1::Statistics* measured = candidate->mutable_measured();
  measured->set_low(low);
  measured->set_median(median);
  measured->set_high(2 * median - low);
  measured->set_spread(spread);
}

TEST(Remarks, AQuietMachineGivesRiseToNone) {
  v1::JobResult result;
  Add(true, 0.99, 1, 0.02, &result);
  Add(true, 1.9, 2, 0.3, &result);
  result.mutable_conditions()->set_load(0.5);
  result.mutable_device()->set_copy_spread(0.05);
  DescribeReliability(&result);
  EXPECT_FALSE(result.unreliable());
  EXPECT_THAT(result.remarks(), IsEmpty());
}

TEST(Remarks, SayHowFarSamplesSpreadAndWhatTheMachineDid) {
  v1::JobResult result;
  Add(true, 0.99, 1, 299, &result);
  Add(true, 1.9, 2, 30, &result);
  result.mutable_conditions()->set_load(4);
  result.mutable_conditions()->set_stolen_share(0.12);
  result.mutable_device()->set_copy_spread(3);
  DescribeReliability(&result);
  EXPECT_FALSE(result.unreliable()) << "what was undisturbed tells enough";
  EXPECT_THAT(result.remarks(),
              ElementsAre(HasSubstr("300-fold (rank 1)"),
                          AllOf(HasSubstr("4.0 threads"), HasSubstr("12 % of the processors' time")),
                          HasSubstr("copies of this device spread 4-fold")));
}

TEST(Remarks, ARaceThatTellsNotWhichIsTheFastestIsCalledUnreliable) {
  v1::JobResult result;
  Add(true, 0.99, 1, 0.5, &result);
  Add(false, 0.9, 5, 0.9, &result);
  DescribeReliability(&result);
  EXPECT_TRUE(result.unreliable());
  EXPECT_THAT(result.remarks(),
              ElementsAre(AllOf(HasSubstr("unreliable"), HasSubstr("of 1 candidate are not"),
                                HasSubstr("nothing was learned"))));
}

TEST(Remarks, WhatCannotBeTheFastestDoesNotMakeARaceUnreliable) {
  v1::JobResult result;
  Add(true, 0.99, 1, 0.5, &result);
  Add(false, 1.5, 5, 0.9, &result);
  DescribeReliability(&result);
  EXPECT_FALSE(result.unreliable());
  EXPECT_THAT(result.remarks(), ElementsAre(HasSubstr("none of which may be the fastest")));
}

}  // namespace
}  // namespace fusion
