// Byte strings as streams of Chunk messages, and back (proto/fusion/v1/artifact.proto).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fusion/v1/artifact.pb.h"

namespace fusion {

inline constexpr int64_t kChunkBytes = 1 << 20;
// The largest byte string that is accepted; device code and exported folders are far smaller, values of an
// input that come from a file may be as large.
inline constexpr int64_t kMaximumBlobBytes = int64_t{512} << 20;
// Most bytes of all inputs of one job that come from files: they go to a runner in one message of 1 GiB, with
// the device code.
inline constexpr int64_t kMaximumInputFileBytes = int64_t{768} << 20;

// Cuts one byte string into chunks of at most kChunkBytes. An empty string is one chunk without data. Not
// thread safe.
class ChunkSplitter {
 public:
  // `digest`: "sha256:<hex>" of `bytes`.
  ChunkSplitter(std::string digest, std::string bytes);
  // Writes the next chunk, or returns false after the last one.
  bool Next(v1::Chunk* chunk);

 private:
  const std::string digest_;
  const std::string bytes_;
  int64_t offset_ = 0;
  bool started_ = false;
};

// Puts chunks together again and checks the digest. Not thread safe.
class ChunkAssembler {
 public:
  // InvalidArgument: the chunk is out of order, larger than announced, larger than kMaximumBlobBytes or
  // kChunkBytes.
  absl::Status Add(const v1::Chunk& chunk);
  // Returns the whole string. DataLoss: chunks are missing, or the digest does not match the bytes.
  absl::StatusOr<std::string> Finish() &&;
  // The digest that the first chunk announced; empty before it.
  const std::string& digest() const { return digest_; }

 private:
  std::string digest_;
  int64_t total_bytes_ = 0;
  std::string bytes_;
  bool started_ = false;
};

// "sha256:<hex>" of the bytes.
std::string BlobDigest(std::string_view bytes);

}  // namespace fusion
