// A server and a worker for the host in this process, on a data directory of their own.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "client/api/client.h"

namespace fusion {

class EmbeddedTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string path = (std::filesystem::temp_directory_path() / "fusion-test-XXXXXX").string();
    folder_ = mkdtemp(path.data());
    Open();
  }
  void TearDown() override {
    client_.reset();
    std::filesystem::remove_all(folder_);
  }
  // Again on the same data, after client_.reset().
  void Open() {
    EmbeddedOptions options;
    options.data_directory = folder_;
    absl::StatusOr<std::unique_ptr<Client>> client = Client::Embedded(options);
    ASSERT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
    client_->StartEmbeddedWorker(v1::HOST);
  }

  std::string folder_;
  std::unique_ptr<Client> client_;
};

}  // namespace fusion
