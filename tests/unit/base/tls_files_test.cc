#include "base/rpc/tls_files.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace fusion {
namespace {

class RevokedCertificatesTest : public ::testing::Test {
 protected:
  void SetUp() override { Revoke(first_); }
  void TearDown() override { std::filesystem::remove(path_); }
  void Revoke(const std::string& fingerprint) { std::ofstream(path_, std::ios::app) << fingerprint << "\n"; }

  const std::string path_ = ::testing::TempDir() + "fusion_revoked_" + std::to_string(getpid());
  const std::string first_ = std::string(64, '1'), second_ = std::string(64, '2');
};

TEST_F(RevokedCertificatesTest, AChangeIsSeenAtTheNextQuestion) {
  RevokedCertificates revoked(path_);
  ASSERT_TRUE(revoked.Load().ok());
  EXPECT_TRUE(revoked.Contains(first_));
  EXPECT_FALSE(revoked.Contains(second_));
  Revoke(second_);
  EXPECT_TRUE(revoked.Contains(second_));
}

// Whoever holds all descriptors of a server must not keep a certificate good that is revoked meanwhile.
TEST_F(RevokedCertificatesTest, AChangeThatCouldNotBeReadIsReadLater) {
  RevokedCertificates revoked(path_);
  ASSERT_TRUE(revoked.Load().ok());
  Revoke(second_);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const bool first = revoked.Contains(first_), second = revoked.Contains(second_);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(first) << "what was revoked before stays so";
  EXPECT_FALSE(second) << "the file was read";
  EXPECT_TRUE(revoked.Contains(second_));
}

TEST_F(RevokedCertificatesTest, WhatCannotBeReadToItsEndRevokesNoLess) {
  RevokedCertificates revoked(path_);
  ASSERT_TRUE(revoked.Load().ok());
  std::filesystem::remove(path_);
  std::filesystem::create_directory(path_);
  EXPECT_TRUE(revoked.Contains(first_)) << "a folder can be opened, and not read";
  EXPECT_FALSE(RevokedCertificates(path_).Load().ok());
  std::filesystem::remove(path_);
  Revoke(second_);
  EXPECT_FALSE(revoked.Contains(first_));
  EXPECT_TRUE(revoked.Contains(second_));
}

}  // namespace
}  // namespace fusion
