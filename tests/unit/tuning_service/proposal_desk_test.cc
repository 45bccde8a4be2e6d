#include "server/tuner/proposal_desk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

namespace fusion {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

// What one program was told.
struct Listener {
  std::shared_ptr<ProgramOutbox> outbox = std::make_shared<ProgramOutbox>([] {});
  std::optional<v1::TuningChoice> Next() {
    std::optional<v1::TuneResponse> response = outbox->Next();
    if (!response) return std::nullopt;
    return response->choice();
  }
  // Numbers of the proposals that came since the last call.
  std::vector<uint64_t> Proposals() {
    std::vector<uint64_t> result;
    while (std::optional<v1::TuningChoice> choice = Next())
      for (const v1::TuningProposal& proposal : choice->proposals()) result.push_back(proposal.id());
    return result;
  }
};

TuningState State() {
  TuningState state;
  state.best = {1};
  state.value = 0.5;
  return state;
}

TuningCandidate Candidate(uint64_t id) { return {id, {static_cast<double>(id)}}; }

constexpr TuningMember kFirst{1, 7}, kSecond{2, 7};

class ProposalDeskTest : public ::testing::Test {
 protected:
  ProposalDesk desk_{{.exploration_share = 0.02}, State()};
  Listener first_, second_;
};

TEST_F(ProposalDeskTest, WhoJoinsIsToldWhatIsBest) {
  desk_.Join(kFirst, first_.outbox);
  const std::optional<v1::TuningChoice> choice = first_.Next();
  ASSERT_TRUE(choice.has_value());
  EXPECT_EQ(choice->section(), 7u);
  EXPECT_THAT(choice->best().values(), ElementsAre(1));
  EXPECT_EQ(choice->expected_value(), 0.5);
  EXPECT_EQ(choice->exploration_share(), 0.02);
  EXPECT_FALSE(first_.Next().has_value());
}

TEST_F(ProposalDeskTest, WhatLiesReadyIsGivenInTheCallThatMakesRoom) {
  desk_.Join(kFirst, first_.outbox);
  desk_.SetDemand(kFirst, 1);
  desk_.Add(Candidate(1));
  desk_.Add(Candidate(2));
  EXPECT_THAT(first_.Proposals(), ElementsAre(1));
  EXPECT_EQ(desk_.need().ready, 1u);
  desk_.Done(kFirst, std::vector<uint64_t>{1});
  EXPECT_THAT(first_.Proposals(), ElementsAre(2));
  EXPECT_EQ(desk_.need().ready, 0u);
  EXPECT_EQ(desk_.need().waiting, 0u);
}

TEST_F(ProposalDeskTest, ADemandIsMetFromWhatLiesReady) {
  desk_.Join(kFirst, first_.outbox);
  for (uint64_t id : {1, 2, 3}) desk_.Add(Candidate(id));
  EXPECT_THAT(first_.Proposals(), IsEmpty());
  desk_.SetDemand(kFirst, 2);
  EXPECT_THAT(first_.Proposals(), ElementsAre(1, 2));
  desk_.SetDemand(kFirst, 3);
  EXPECT_THAT(first_.Proposals(), ElementsAre(3));
}

TEST_F(ProposalDeskTest, FewProposalsGoToAsManyProgramsAsPossible) {
  desk_.Join(kFirst, first_.outbox);
  desk_.Join(kSecond, second_.outbox);
  desk_.SetDemand(kFirst, 2);
  desk_.SetDemand(kSecond, 2);
  EXPECT_EQ(desk_.need().waiting, 4u);
  EXPECT_EQ(desk_.need().programs, 2u);
  desk_.Add(Candidate(1));
  desk_.Add(Candidate(2));
  EXPECT_EQ(first_.Proposals().size(), 1u);
  EXPECT_EQ(second_.Proposals().size(), 1u);
}

TEST_F(ProposalDeskTest, WhoLeavesLeavesHisProposals) {
  desk_.Join(kFirst, first_.outbox);
  desk_.SetDemand(kFirst, 2);
  desk_.Add(Candidate(1));
  desk_.Add(Candidate(2));
  EXPECT_THAT(desk_.Leave(kFirst), UnorderedElementsAre(1, 2));
  EXPECT_THAT(desk_.Leave(kFirst), IsEmpty());
  EXPECT_EQ(desk_.need().programs, 0u);
  desk_.Done(kFirst, std::vector<uint64_t>{1});  // on its way when the program went
}

TEST_F(ProposalDeskTest, ANewGenerationMakesAllProposalsVoid) {
  desk_.Join(kFirst, first_.outbox);
  desk_.SetDemand(kFirst, 1);
  desk_.Add(Candidate(1));
  desk_.Add(Candidate(2));
  EXPECT_THAT(first_.Proposals(), ElementsAre(1));
  TuningState state = State();
  state.generation = 2;
  EXPECT_THAT(desk_.Follow(state), UnorderedElementsAre(1, 2));
  const std::optional<v1::TuningChoice> choice = first_.Next();
  ASSERT_TRUE(choice.has_value());
  EXPECT_EQ(choice->generation(), 2u);
  EXPECT_EQ(desk_.need().waiting, 1u);
}

TEST_F(ProposalDeskTest, WhenNothingBetterIsExpectedWhatLiesReadyIsVoid) {
  desk_.Join(kFirst, first_.outbox);
  desk_.SetDemand(kFirst, 1);
  desk_.Add(Candidate(1));
  desk_.Add(Candidate(2));
  TuningState state = State();
  state.phase = v1::CONVERGED;
  EXPECT_THAT(desk_.Follow(state), ElementsAre(2));
}

TEST_F(ProposalDeskTest, OnlyChangesThatMatterAreTold) {
  desk_.Join(kFirst, first_.outbox);
  EXPECT_TRUE(first_.Next().has_value());
  TuningState state = State();
  state.evaluations = 10;
  state.value *= 1.01;
  EXPECT_THAT(desk_.Follow(state), IsEmpty());
  EXPECT_FALSE(first_.Next().has_value());
  state.value *= 1.03;
  desk_.Follow(state);
  EXPECT_TRUE(first_.Next().has_value());
  state.best = {2};
  desk_.Follow(state);
  EXPECT_TRUE(first_.Next().has_value());
}

}  // namespace
}  // namespace fusion
