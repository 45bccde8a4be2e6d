#include "server/rpc/chunk_stream.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <memory>
#include <utility>

#include "base/rpc/chunks.h"
#include "base/rpc/status_conversion.h"
#include "base/status_macros.h"
#include "server/identity/shown_credentials.h"
#include "server/rpc/pooled_call.h"

namespace fusion {
namespace {

class SendReactor : public grpc::ServerWriteReactor<v1::Chunk> {
 public:
  SendReactor(boost::asio::thread_pool& pool, AccessGate& gate, const IncomingCall& incoming,
              std::function<absl::StatusOr<Blob>(AdmittedCall&)> load) {
    ShownCredentials shown = ShownBy(incoming.context, gate);
    absl::StatusOr<Principal> caller = gate.Admit(shown, incoming.method, incoming.request.ByteSizeLong());
    if (!caller.ok()) {
      Finish(ToGrpcStatus(caller.status()));
      return;
    }
    boost::asio::post(pool, [this, &gate, caller = *std::move(caller), shown = std::move(shown),
                             method = incoming.method, load = std::move(load)] {
      AdmittedCall call{caller, token_, "", false};
      absl::Status status = RunCatching([&]() -> absl::Status {
        absl::StatusOr<Blob> blob = load(call);
        if (!blob.ok()) {
          // Whoever reads may tell nobody, and only the first one is told.
          if (absl::IsDataLoss(blob.status()))
            spdlog::error("{}: {}", method, std::string(blob.status().message()));
          return blob.status();
        }
        splitter_ = std::make_unique<ChunkSplitter>(std::move(blob->digest), std::move(blob->bytes));
        return absl::OkStatus();
      });
      gate.RecordEnd(&caller, shown, method, call.subject,
                     call.refused ? absl::PermissionDeniedError("") : status);
      if (status.ok()) {
        WriteNext();
      } else {
        Finish(ToGrpcStatus(status));
      }
    });
  }
  void OnWriteDone(bool ok) override {
    if (ok) {
      WriteNext();
    } else {
      Finish(grpc::Status(grpc::StatusCode::CANCELLED, "the receiver has gone"));
    }
  }
  void OnDone() override { delete this; }

 private:
  void WriteNext() {
    if (splitter_->Next(&chunk_)) {
      StartWrite(&chunk_);
    } else {
      Finish(grpc::Status::OK);
    }
  }

  CancellationToken token_;
  std::unique_ptr<ChunkSplitter> splitter_;
  v1::Chunk chunk_;
};

class ReceiveReactor : public grpc::ServerReadReactor<v1::Chunk> {
 public:
  ReceiveReactor(boost::asio::thread_pool& pool, AccessGate& gate, const IncomingCall& incoming,
                 v1::WriteBlobResponse* response, ReceivedBlobStore store)
      : pool_(pool),
        gate_(gate),
        method_(incoming.method),
        shown_(ShownBy(incoming.context, gate)),
        response_(response),
        store_(std::move(store)) {
    absl::StatusOr<Principal> caller = gate.Admit(shown_, incoming.method, 0);
    if (caller.ok()) {
      caller_ = *std::move(caller);
      StartRead(&chunk_);
    } else {
      Finish(ToGrpcStatus(caller.status()));
    }
  }
  void OnReadDone(bool ok) override {
    if (ok) {
      const absl::Status status = assembler_.Add(chunk_);
      if (status.ok()) {
        StartRead(&chunk_);
      } else {
        Finish(ToGrpcStatus(status));
      }
      return;
    }
    boost::asio::post(pool_, [this] {
      AdmittedCall call{caller_, token_, "", false};
      const absl::Status status = RunCatching([&] { return Store(call); });
      gate_.RecordEnd(&caller_, shown_, method_, call.subject, status);
      Finish(ToGrpcStatus(status));
    });
  }
  void OnCancel() override { token_.Cancel(); }
  void OnDone() override { delete this; }

 private:
  absl::Status Store(AdmittedCall& call) {
    Blob blob;
    blob.digest = assembler_.digest();
    FUSION_ASSIGN_OR_RETURN(std::string bytes, std::move(assembler_).Finish());
    blob.bytes = std::move(bytes);
    response_->set_digest(blob.digest);
    return store_(call, blob);
  }

  boost::asio::thread_pool& pool_;
  AccessGate& gate_;
  const char* const method_;
  const ShownCredentials shown_;
  v1::WriteBlobResponse* response_;
  const ReceivedBlobStore store_;
  Principal caller_;
  CancellationToken token_;
  ChunkAssembler assembler_;
  v1::Chunk chunk_;
};

}  // namespace

grpc::ServerWriteReactor<v1::Chunk>* SendBlob(boost::asio::thread_pool& pool, AccessGate& gate,
                                              const IncomingCall& incoming,
                                              std::function<absl::StatusOr<Blob>(AdmittedCall&)> load) {
  return new SendReactor(pool, gate, incoming, std::move(load));
}

grpc::ServerReadReactor<v1::Chunk>* ReceiveBlob(boost::asio::thread_pool& pool, AccessGate& gate,
                                                const IncomingCall& incoming, v1::WriteBlobResponse* response,
                                                ReceivedBlobStore store) {
  return new ReceiveReactor(pool, gate, incoming, response, std::move(store));
}

}  // namespace fusion
