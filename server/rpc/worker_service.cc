#include "server/rpc/worker_service.h"

#include <atomic>
#include <boost/asio/post.hpp>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/rpc/status_conversion.h"
#include "base/status_macros.h"
#include "server/identity/shown_credentials.h"
#include "server/rpc/chunk_stream.h"
#include "server/rpc/pooled_call.h"

namespace fusion {
namespace {

// Ended by the dispatcher alone, at the latest when it stops.
class SynchronizeReactor : public grpc::ServerUnaryReactor {
 public:
  // call: see Dispatcher::CallBroke; 0 as long as the call has not been admitted.
  SynchronizeReactor(Dispatcher& dispatcher, std::string worker)
      : dispatcher_(dispatcher), worker_(std::move(worker)) {}
  void set_call(int64_t call) { call_ = call; }
  void OnCancel() override {
    if (const int64_t call = call_; call != 0) dispatcher_.CallBroke(worker_, call);
  }
  void OnDone() override { delete this; }

 private:
  Dispatcher& dispatcher_;
  const std::string worker_;
  std::atomic<int64_t> call_ = 0;
};

}  // namespace

WorkerServiceImpl::WorkerServiceImpl(const ServiceContext& context) : context_(context) {}
WorkerServiceImpl::~WorkerServiceImpl() = default;

grpc::ServerUnaryReactor* WorkerServiceImpl::Synchronize(grpc::CallbackServerContext* call,
                                                         const v1::SynchronizeRequest* request,
                                                         v1::SynchronizeResponse* response) {
  auto* reactor = new SynchronizeReactor(context_.dispatcher, request->worker());
  if (request->worker().empty() || request->instance().empty()) {
    reactor->Finish(
        ToGrpcStatus(InvalidField(request->worker().empty() ? "worker" : "instance", "must not be empty")));
    return reactor;
  }
  const char* method = "/fusion.v1.WorkerService/Synchronize";
  const ShownCredentials shown = ShownBy(*call, context_.gate);
  absl::StatusOr<Principal> caller = context_.gate.Admit(shown, method, request->ByteSizeLong());
  if (caller.ok() && !MayActAsWorker(*caller, request->worker())) {
    const absl::Status refused = absl::PermissionDeniedError(
        absl::StrCat(caller->name, " may not speak as the worker ", request->worker(), "; its name must be ",
                     caller->name, " or begin with ", caller->name, "/ (fusion-worker --name)"));
    context_.gate.RecordEnd(&*caller, shown, method, request->worker(), refused);
    caller = refused;
  }
  if (!caller.ok()) {
    reactor->Finish(ToGrpcStatus(caller.status()));
    return reactor;
  }
  const int64_t number = ++calls_;
  reactor->set_call(number);
  // On the pool, because results are written to the disk before the answer.
  boost::asio::post(context_.workers, [this, reactor, response, request, number] {
    context_.dispatcher.Synchronize(
        *request,
        [reactor, response](v1::SynchronizeResponse answer) {
          *response = std::move(answer);
          reactor->Finish(grpc::Status::OK);
        },
        number);
  });
  return reactor;
}

grpc::ServerWriteReactor<v1::Chunk>* WorkerServiceImpl::ReadBlob(grpc::CallbackServerContext* call,
                                                                 const v1::ReadBlobRequest* request) {
  const IncomingCall incoming{*call, "/fusion.v1.WorkerService/ReadBlob", *request};
  return SendBlob(context_.workers, context_.gate, incoming,
                  [this, digest = request->digest()](AdmittedCall&) -> absl::StatusOr<Blob> {
                    FUSION_ASSIGN_OR_RETURN(std::string bytes, context_.store.GetBlob(digest));
                    return Blob{digest, std::move(bytes)};
                  });
}

grpc::ServerReadReactor<v1::Chunk>* WorkerServiceImpl::WriteBlob(grpc::CallbackServerContext* call,
                                                                 v1::WriteBlobResponse* response) {
  const IncomingCall incoming{*call, "/fusion.v1.WorkerService/WriteBlob", *response};
  return ReceiveBlob(context_.workers, context_.gate, incoming, response,
                     [this](AdmittedCall&, const Blob& blob) -> absl::Status {
                       return context_.store.PutBlob(blob.bytes, blob.digest, TimeOfDay()).status();
                     });
}

}  // namespace fusion
