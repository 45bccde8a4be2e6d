#include "server/identity/principal.h"

#include <gtest/gtest.h>

namespace fusion {
namespace {

const Principal kEva{"eva", Role::kUser, Principal::How::kCertificate};
const Principal kRoot{"root", Role::kAdmin, Principal::How::kToken};
const Principal kGpu{"gpu1", Role::kWorker, Principal::How::kCertificate};

TEST(PrincipalTest, Names) {
  for (const char* name : {"a", "eva", "eva@example.org", "gpu-1.farm_2", "0"})
    EXPECT_TRUE(IsPrincipalName(name)) << name;
  for (const char* name : {"", "a/b", "a b", "a:b", "\n", "ev\xc3\xa4", "*", "a,b"})
    EXPECT_FALSE(IsPrincipalName(name)) << name;
  EXPECT_TRUE(IsPrincipalName(std::string(64, 'a')));
  EXPECT_FALSE(IsPrincipalName(std::string(65, 'a')));
  EXPECT_FALSE(IsPrincipalName(std::string_view("a\0b", 3)));
}

TEST(PrincipalTest, RolesHaveNames) {
  for (Role role : {Role::kUser, Role::kWorker, Role::kAdmin}) EXPECT_EQ(ParseRole(RoleName(role)), role);
  for (const char* name : {"", "user", "USER ", "ROOT"}) EXPECT_EQ(ParseRole(name), std::nullopt) << name;
}

TEST(PrincipalTest, JobsAreSeenByTheirOwnersAndAdmins) {
  EXPECT_TRUE(MaySeeJobsOf(kEva, "eva"));
  EXPECT_FALSE(MaySeeJobsOf(kEva, "max"));
  EXPECT_FALSE(MaySeeJobsOf(kEva, "")) << "the operator's";
  EXPECT_TRUE(MaySeeJobsOf(kRoot, "eva"));
  EXPECT_TRUE(MaySeeJobsOf(Principal{}, "eva"));
  EXPECT_FALSE(MaySeeJobsOf(kGpu, "gpu1"));
}

TEST(PrincipalTest, WorkersSpeakForThemselves) {
  EXPECT_TRUE(MayActAsWorker(kGpu, "gpu1"));
  EXPECT_TRUE(MayActAsWorker(kGpu, "gpu1/0"));
  for (const char* name : {"", "gpu", "gpu2", "gpu10", "gpu1 ", "x/gpu1"})
    EXPECT_FALSE(MayActAsWorker(kGpu, name)) << name;
  EXPECT_FALSE(MayActAsWorker(kRoot, "root"));
  EXPECT_FALSE(MayActAsWorker(kEva, "eva"));
  EXPECT_TRUE(MayActAsWorker(Principal{}, "gpu1"));
}

}  // namespace
}  // namespace fusion
