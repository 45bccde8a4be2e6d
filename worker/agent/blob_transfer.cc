#include "worker/agent/blob_transfer.h"

#include <grpcpp/client_context.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "worker/agent/retry.h"

namespace fusion {
namespace {

constexpr size_t kChunkBytes = 1 << 20;
constexpr std::chrono::seconds kCallDeadline{60};
// Values of an input may have 512 MiB: in this time they come at 0.9 MB/s.
constexpr std::chrono::seconds kReadDeadline{600};

bool HasDigest(const std::string& content, const std::string& digest) {
  return absl::StrCat("sha256:", Sha256Hex(content)) == digest;
}

absl::Status FromGrpc(const grpc::Status& status) {
  // Not by this worker, which stops in other words.
  if (status.error_code() == grpc::StatusCode::CANCELLED)
    return absl::UnavailableError("the server gave the call up");
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

}  // namespace

BlobTransfer::BlobTransfer(std::shared_ptr<grpc::Channel> channel, int64_t cache_bytes)
    : stub_(v1::WorkerService::NewStub(channel)), cache_(cache_bytes) {}

absl::StatusOr<std::string> BlobTransfer::Read(const std::string& digest, std::stop_token stop) {
  if (std::optional<std::string> cached = cache_.Get(digest)) {
    if (HasDigest(*cached, digest)) return *std::move(cached);
    spdlog::error("the bytes of {} in this worker's memory were damaged; they are fetched again", digest);
    cache_.Remove(digest);
  }
  return ReadFromServer(digest, stop);
}

void BlobTransfer::Prefetch(const std::string& digest, std::stop_token stop) {
  // Whoever reads it is told of errors.
  if (!cache_.Has(digest)) ReadFromServer(digest, stop).IgnoreError();
}

absl::StatusOr<std::string> BlobTransfer::ReadFromServer(const std::string& digest, std::stop_token stop) {
  Backoff backoff;
  while (true) {
    absl::StatusOr<std::string> blob = ReadOnce(digest, stop);
    if (blob.ok()) cache_.Put(digest, *blob);
    if (blob.ok() || !IsTransient(blob.status())) return blob;
    if (!backoff.Wait(stop)) return absl::CancelledError("stopped");
  }
}

absl::StatusOr<std::string> BlobTransfer::ReadOnce(const std::string& digest, std::stop_token stop) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kReadDeadline);
  std::stop_callback cancel(stop, [&] { context.TryCancel(); });
  v1::ReadBlobRequest request;
  request.set_digest(digest);
  auto reader = stub_->ReadBlob(&context, request);
  std::string content;
  v1::Chunk chunk;
  bool ordered = true;
  while (reader->Read(&chunk)) {
    ordered &= chunk.offset() == static_cast<int64_t>(content.size());
    content += chunk.data();
  }
  const grpc::Status status = reader->Finish();
  if (stop.stop_requested()) return absl::CancelledError("stopped");
  if (!status.ok()) return FromGrpc(status);
  if (!ordered || !HasDigest(content, digest))
    return absl::DataLossError(absl::StrCat("the server sent something else than ", digest));
  return content;
}

absl::Status BlobTransfer::Write(const std::string& digest, const std::string& content,
                                 std::stop_token stop) {
  cache_.Put(digest, content);
  Backoff backoff;
  while (true) {
    absl::Status written = WriteOnce(digest, content, stop);
    if (written.ok() || !IsTransient(written)) return written;
    if (!backoff.Wait(stop)) return absl::CancelledError("stopped");
  }
}

absl::Status BlobTransfer::WriteOnce(const std::string& digest, const std::string& content,
                                     std::stop_token stop) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kCallDeadline);
  std::stop_callback cancel(stop, [&] { context.TryCancel(); });
  v1::WriteBlobResponse response;
  auto writer = stub_->WriteBlob(&context, &response);
  size_t offset = 0;
  do {
    v1::Chunk chunk;
    if (offset == 0) {
      chunk.set_digest(digest);
      chunk.set_total_bytes(static_cast<int64_t>(content.size()));
    }
    chunk.set_offset(static_cast<int64_t>(offset));
    chunk.set_data(content.substr(offset, kChunkBytes));
    offset += chunk.data().size();
    if (!writer->Write(chunk)) break;  // Finish says why
  } while (offset < content.size());
  writer->WritesDone();
  const grpc::Status status = writer->Finish();
  if (stop.stop_requested()) return absl::CancelledError("stopped");
  if (!status.ok()) return FromGrpc(status);
  if (response.digest() != digest)
    return absl::DataLossError(absl::StrCat("the server stored ", response.digest(), " for ", digest));
  return absl::OkStatus();
}

}  // namespace fusion
