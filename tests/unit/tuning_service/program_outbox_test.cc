#include "server/tuner/program_outbox.h"

#include <gtest/gtest.h>

namespace fusion {
namespace {

v1::TuningChoice Choice(uint32_t section, uint64_t generation, uint64_t proposal) {
  v1::TuningChoice choice;
  choice.set_section(section);
  choice.set_generation(generation);
  if (proposal > 0) choice.add_proposals()->set_id(proposal);
  return choice;
}

TEST(ProgramOutboxTest, OrderAndMerging) {
  int woken = 0;
  ProgramOutbox outbox([&] { ++woken; });
  EXPECT_FALSE(outbox.Next());
  outbox.AddChoice(Choice(1, 1, 11));
  outbox.AddChoice(Choice(2, 1, 0));
  outbox.AddChoice(Choice(1, 1, 12));
  outbox.AddAcknowledged(3);
  outbox.AddAcknowledged(5);
  outbox.AddAcknowledged(4);
  v1::Declared declared;
  declared.set_section(1);
  outbox.AddDeclared(declared);
  outbox.AddWelcome(2);
  EXPECT_EQ(woken, 1);
  EXPECT_EQ(outbox.Next()->welcome().last_sequence(), 2u);
  EXPECT_EQ(outbox.Next()->declared().section(), 1u);
  EXPECT_EQ(outbox.Next()->acknowledged().sequence(), 5u);
  const v1::TuningChoice first = outbox.Next()->choice();
  EXPECT_EQ(first.section(), 1u);
  ASSERT_EQ(first.proposals_size(), 2);
  EXPECT_EQ(first.proposals(0).id(), 11u);
  EXPECT_EQ(first.proposals(1).id(), 12u);
  EXPECT_EQ(outbox.Next()->choice().section(), 2u);
  EXPECT_FALSE(outbox.Next());
  outbox.AddAcknowledged(6);
  EXPECT_EQ(woken, 2);
}

TEST(ProgramOutboxTest, ProposalsOfAnOlderGenerationGo) {
  ProgramOutbox outbox([] {});
  outbox.AddChoice(Choice(1, 1, 11));
  outbox.AddChoice(Choice(1, 2, 12));
  const v1::TuningChoice choice = outbox.Next()->choice();
  ASSERT_EQ(choice.proposals_size(), 1);
  EXPECT_EQ(choice.proposals(0).id(), 12u);
}

TEST(ProgramOutboxTest, EndWakesWhoeverWaits) {
  int woken = 0;
  ProgramOutbox outbox([&] { ++woken; });
  outbox.AddAcknowledged(1);
  EXPECT_FALSE(outbox.ended());
  outbox.End(absl::AbortedError("first"));
  outbox.End(absl::UnavailableError("second"));
  EXPECT_GE(woken, 2);
  EXPECT_TRUE(absl::IsAborted(*outbox.ended()));
}

TEST(ProgramOutboxTest, WhatIsRefusedOfASectionIsOneMessageBeforeItsAcknowledgement) {
  ProgramOutbox outbox([] {});
  outbox.AddAcknowledged(1);
  for (int i = 0; i < 1000; ++i)
    outbox.AddRefused(3, absl::InvalidArgumentError("reason " + std::to_string(i)), 2);
  outbox.AddAcknowledged(2);
  const std::optional<v1::TuneResponse> refused = outbox.Next();
  ASSERT_TRUE(refused && refused->has_refused());
  EXPECT_EQ(refused->refused().section(), 3u);
  EXPECT_EQ(refused->refused().runs(), 2000u);
  EXPECT_EQ(refused->refused().status().message(), "reason 999");
  EXPECT_EQ(outbox.Next()->acknowledged().sequence(), 2u);
  EXPECT_FALSE(outbox.Next().has_value());
}

TEST(ProgramOutboxTest, AnswersToTheSameSectionAreOne) {
  ProgramOutbox outbox([] {});
  v1::Declared declared;
  for (int i = 0; i < 1000; ++i) {
    declared.set_section(static_cast<uint32_t>(i % 2));
    declared.set_tuning("tunings/" + std::to_string(i));
    outbox.AddDeclared(declared);
  }
  EXPECT_EQ(outbox.Next()->declared().tuning(), "tunings/998");
  EXPECT_EQ(outbox.Next()->declared().tuning(), "tunings/999");
  EXPECT_FALSE(outbox.Next().has_value());
}

}  // namespace
}  // namespace fusion
