#include "server/identity/openssl_exit.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>

#include <chrono>
#include <cstdlib>
#include <thread>

namespace fusion {
namespace {

void Pause() { std::this_thread::sleep_for(std::chrono::milliseconds(50)); }

// What a thread of gRPC does that tries to reach a server again: decodes, looks algorithms up, draws keys.
void UseOpenSsl() {
  for (;;) EVP_PKEY_free(EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256"));
}

[[noreturn]] void EndWhileOthersUseIt() {
  std::atexit(Pause);  // runs behind OpenSSL's own, were there one
  KeepOpenSslToTheEnd();
  for (int i = 0; i < 4; ++i) std::thread(UseOpenSsl).detach();
  Pause();
  std::exit(0);
}

TEST(OpenSslExitDeathTest, ThreadsMayUseItUntilTheProcessIsGone) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a process of its own, where nothing has used it yet
  EXPECT_EXIT(EndWhileOthersUseIt(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace fusion
