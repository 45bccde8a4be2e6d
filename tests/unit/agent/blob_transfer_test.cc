#include "worker/agent/blob_transfer.h"

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "tests/unit/agent/fake_server.h"

namespace fusion {
namespace {

std::string DigestOf(const std::string& content) { return absl::StrCat("sha256:", Sha256Hex(content)); }

class BlobTransferTest : public ::testing::Test {
 protected:
  void SetUp() override {
    grpc::ServerBuilder builder;
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
    blobs_ = std::make_unique<BlobTransfer>(server_->InProcessChannel(grpc::ChannelArguments()), 1 << 20);
  }
  void TearDown() override { server_->Shutdown(); }

  FakeServer service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<BlobTransfer> blobs_;
};

TEST_F(BlobTransferTest, BytesThatAreDamagedInTheCacheAreFetchedAgain) {
  const std::string content(5000, 'c'), digest = DigestOf(content);
  ASSERT_TRUE(blobs_->Write(digest, content, {}).ok());
  // The cache takes what it is given, before the server looks at it.
  BlobTransfer damaged(server_->InProcessChannel(grpc::ChannelArguments()), 1 << 20);
  std::string bytes = content;
  bytes[2500] ^= 4;
  (void)damaged.Write(digest, bytes, {});
  service_.PutBlob(digest, content);
  const absl::StatusOr<std::string> read = damaged.Read(digest, {});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, content);
  const int reads = service_.BlobReads();
  EXPECT_EQ(*damaged.Read(digest, {}), content);
  EXPECT_EQ(service_.BlobReads(), reads) << "the good bytes are in the cache now";
}

TEST_F(BlobTransferTest, WhatTheServerSendsDamagedIsNoBlob) {
  service_.PutBlob(DigestOf("right"), "wrong");
  EXPECT_EQ(blobs_->Read(DigestOf("right"), {}).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(blobs_->Read(DigestOf("nowhere"), {}).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(BlobTransferTest, WhatWasPrefetchedIsThereWithoutTheServer) {
  service_.PutBlob(DigestOf("binary"), "binary");
  blobs_->Prefetch(DigestOf("binary"), {});
  blobs_->Prefetch(DigestOf("nowhere"), {});
  const int reads = service_.BlobReads();
  EXPECT_EQ(*blobs_->Read(DigestOf("binary"), {}), "binary");
  EXPECT_EQ(service_.BlobReads(), reads);
}

}  // namespace
}  // namespace fusion
