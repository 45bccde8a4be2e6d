#include "base/rpc/channel_credentials.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "base/sha256.h"
#include "tests/eventually.h"

namespace fusion {
namespace {

std::atomic<int> uses = 0;

// As a thread of gRPC does that tries to reach a server again: looks algorithms up.
void UseOpenSsl() {
  for (;; ++uses) EXPECT_EQ(Sha256Hex("").substr(0, 8), "e3b0c442");
}

void WaitForUses() {
  const int before = uses;
  EXPECT_TRUE(Eventually([&] { return uses > before + 1000; }));
}

[[noreturn]] void EndWhileOthersUseIt() {
  std::atexit(WaitForUses);  // runs after OpenSSL's own, were there one
  KeepOpenSslToTheEnd();
  for (int i = 0; i < 4; ++i) std::thread(UseOpenSsl).detach();
  WaitForUses();
  std::exit(0);
}

TEST(KeepOpenSslToTheEndDeathTest, ThreadsMayUseItUntilTheProcessIsGone) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a process of its own, where nothing has used it yet
  EXPECT_EXIT(EndWhileOthersUseIt(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace fusion
