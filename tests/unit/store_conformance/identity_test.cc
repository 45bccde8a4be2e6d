#include <gmock/gmock.h>

#include <algorithm>

#include "tests/unit/store_conformance/store_conformance.h"

namespace fusion {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class IdentityTest : public StoreConformanceTest {
 protected:
  static TokenRecord Token(const std::string& id) {
    return TokenRecord{.id = id,
                       .principal = "eva",
                       .role = "USER",
                       .secret_hash = "00ff",
                       .created = At(1),
                       .expires = At(100)};
  }
  static AuditRecord Entry(const std::string& subject) {
    return AuditRecord{.time = At(5),
                       .principal = "eva",
                       .role = "USER",
                       .peer = "ipv4:127.0.0.1:1",
                       .method = "/fusion.v1.OptimizerService/CancelJob",
                       .subject = subject,
                       .outcome = "OK"};
  }
  std::vector<std::string> Subjects() {
    std::vector<std::string> subjects;
    absl::StatusOr<AuditPage> page = store_->ListAuditEntries(1000, "");
    EXPECT_TRUE(page.ok()) << page.status();
    if (page.ok())
      for (const AuditRecord& entry : page->entries) subjects.push_back(entry.subject);
    return subjects;
  }
};

TEST_P(IdentityTest, ATokenOutlivesTheProcess) {
  ASSERT_TRUE(store_->AddToken(Token("tokens/1")).ok());
  ASSERT_TRUE(store_->AddToken(Token("tokens/2")).ok());
  Reopen();
  absl::StatusOr<std::vector<TokenRecord>> tokens = store_->Tokens();
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  ASSERT_EQ(tokens->size(), 2u);
  const TokenRecord& token = tokens->front();
  EXPECT_EQ(token.id, "tokens/1");
  EXPECT_EQ(token.principal, "eva");
  EXPECT_EQ(token.role, "USER");
  EXPECT_EQ(token.secret_hash, "00ff");
  EXPECT_EQ(token.created, At(1));
  EXPECT_EQ(token.expires, At(100));
  EXPECT_EQ(token.revoked, Timestamp());
}

TEST_P(IdentityTest, WhatATokenIsLimitedTo) {
  TokenRecord token = Token("tokens/1");
  token.scopes = "read submit";
  ASSERT_TRUE(store_->AddToken(token).ok());
  ASSERT_TRUE(store_->AddToken(Token("tokens/2")).ok());
  Reopen();
  EXPECT_EQ(store_->Tokens()->front().scopes, "read submit");
  EXPECT_EQ(store_->Tokens()->back().scopes, "");
  EXPECT_EQ(store_->RevokeToken("tokens/1", At(7))->scopes, "read submit");
}

TEST_P(IdentityTest, AnIdIsTakenOnce) {
  ASSERT_TRUE(store_->AddToken(Token("tokens/1")).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(store_->AddToken(Token("tokens/1"))));
}

TEST_P(IdentityTest, ARoleThatIsNoneIsRefused) {
  TokenRecord token = Token("tokens/1");
  token.role = "EMPEROR";
  EXPECT_FALSE(store_->AddToken(token).ok());
  EXPECT_THAT(*store_->Tokens(), IsEmpty());
}

TEST_P(IdentityTest, TheFirstRevocationStands) {
  ASSERT_TRUE(store_->AddToken(Token("tokens/1")).ok());
  EXPECT_EQ(store_->RevokeToken("tokens/1", At(7))->revoked, At(7));
  EXPECT_EQ(store_->RevokeToken("tokens/1", At(9))->revoked, At(7));
  EXPECT_TRUE(absl::IsNotFound(store_->RevokeToken("tokens/2", At(9)).status()));
}

TEST_P(IdentityTest, AuditEntriesComeNewestFirstInPages) {
  ASSERT_TRUE(store_->AddAuditEntries({Entry("a"), Entry("b"), Entry("c")}, 100).ok());
  absl::StatusOr<AuditPage> page = store_->ListAuditEntries(2, "");
  ASSERT_TRUE(page.ok()) << page.status();
  ASSERT_EQ(page->entries.size(), 2u);
  EXPECT_EQ(page->entries[0].subject, "c");
  EXPECT_EQ(page->entries[0].principal, "eva");
  EXPECT_EQ(page->entries[0].role, "USER");
  EXPECT_EQ(page->entries[0].peer, "ipv4:127.0.0.1:1");
  EXPECT_EQ(page->entries[0].method, "/fusion.v1.OptimizerService/CancelJob");
  EXPECT_EQ(page->entries[0].outcome, "OK");
  EXPECT_EQ(page->entries[0].time, At(5));
  EXPECT_EQ(page->entries[0].number, page->entries[1].number + 1);
  page = store_->ListAuditEntries(2, page->next_page_token);
  ASSERT_TRUE(page.ok()) << page.status();
  ASSERT_EQ(page->entries.size(), 1u);
  EXPECT_EQ(page->entries[0].subject, "a");
  EXPECT_EQ(page->next_page_token, "");
  EXPECT_TRUE(absl::IsInvalidArgument(store_->ListAuditEntries(2, "x").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(store_->ListAuditEntries(-2, "").status()));
}

TEST_P(IdentityTest, TheOldestAuditEntriesAreForgotten) {
  ASSERT_TRUE(store_->AddAuditEntries({Entry("a"), Entry("b")}, 3).ok());
  ASSERT_TRUE(store_->AddAuditEntries({Entry("c")}, 3).ok());
  EXPECT_THAT(Subjects(), ElementsAre("c", "b", "a"));
  ASSERT_TRUE(store_->AddAuditEntries({Entry("d"), Entry("e")}, 3).ok());
  EXPECT_THAT(Subjects(), ElementsAre("e", "d", "c"));
  Reopen();
  ASSERT_TRUE(store_->AddAuditEntries({Entry("f")}, 3).ok());
  EXPECT_THAT(Subjects(), ElementsAre("f", "e", "d"));
}

TEST_P(IdentityTest, RefusalsDoNotWashOutChanges) {
  ASSERT_TRUE(store_->AddAuditEntries({Entry("change")}, 2).ok());
  AuditRecord refusal = Entry("refusal");
  refusal.outcome = "PERMISSION_DENIED";
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(store_->AddAuditEntries({refusal}, 2).ok());
  EXPECT_THAT(Subjects(), ElementsAre("refusal", "refusal", "change"));
}

TEST_P(IdentityTest, JobsAreListedByUser) {
  for (const char* user : {"eva", "max", "eva", "", "eva"}) {
    JobRecord job;
    job.user = user;
    job.request_id = "same";
    if (std::string(user) == "eva") job.request_id = "";
    ASSERT_TRUE(store_->CreateJob(job, At(1)).ok());
  }
  absl::StatusOr<JobPage> page = store_->ListJobsOf("eva", 2, "");
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_EQ(page->jobs.size(), 2u);
  page = store_->ListJobsOf("eva", 2, page->next_page_token);
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_EQ(page->jobs.size(), 1u);
  EXPECT_EQ(page->next_page_token, "");
  EXPECT_EQ(store_->ListJobsOf("max", 0, "")->jobs.size(), 1u);
  EXPECT_EQ(store_->ListJobsOf("", 0, "")->jobs.size(), 1u) << "the jobs of nobody, not of all";
  EXPECT_EQ(store_->ListJobs(0, "")->jobs.size(), 5u);
}

FOR_EVERY_STORE(IdentityTest);

}  // namespace
}  // namespace fusion
