#include "server/service/pooled_call.h"

#include <grpcpp/server_context.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <new>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/identity/shown_credentials.h"
#include "server/service/status_conversion.h"

namespace fusion {
namespace {

// Messages of many small strings take three times what is sent of them.
constexpr size_t kCopies = 4;

class PooledReactor : public grpc::ServerUnaryReactor {
 public:
  void OnCancel() override { token_.Cancel(); }
  void OnDone() override { delete this; }
  const CancellationToken& token() const { return token_; }
  void set_answer(std::shared_ptr<void> answer) { answer_ = std::move(answer); }

 private:
  CancellationToken token_;
  std::shared_ptr<void> answer_;
};

}  // namespace

size_t AcceptedErrorBytes(const grpc::CallbackServerContext& context) {
  auto header = context.client_metadata().find(kErrorBytesHeader);
  size_t bytes = 0;
  if (header == context.client_metadata().end() ||
      !absl::SimpleAtoi(absl::string_view(header->second.data(), header->second.size()), &bytes))
    return kDefaultErrorBytes;
  return std::clamp(bytes, kDefaultErrorBytes, kMaximumErrorBytes);
}

absl::Status RunCatching(const std::function<absl::Status()>& work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("the server ran out of memory on this call");
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("the call failed: ", error.what()));
  }
}

std::shared_ptr<void> HoldAnswer(AccessGate& gate, const std::string& peer,
                                 const grpc::CallbackServerContext& call, size_t bytes) {
  return gate.answers().Hold(peer, bytes, std::chrono::steady_clock::now(), [&call] { call.TryCancel(); });
}

size_t MemoryOf(const google::protobuf::MessageLite& answer) { return kCopies * answer.ByteSizeLong(); }

grpc::ServerUnaryReactor* RunOnPool(boost::asio::thread_pool& pool, AccessGate& gate,
                                    const IncomingCall& incoming,
                                    const google::protobuf::MessageLite* response,
                                    std::function<absl::Status(AdmittedCall&)> work) {
  auto* reactor = new PooledReactor();
  const size_t error_bytes = AcceptedErrorBytes(incoming.context);
  ShownCredentials shown = ShownBy(incoming.context, gate.connections());
  absl::StatusOr<Principal> caller = gate.Admit(shown, incoming.method, incoming.request.ByteSizeLong());
  if (!caller.ok()) {
    reactor->Finish(ToGrpcStatus(caller.status(), error_bytes));
    return reactor;
  }
  boost::asio::post(
      pool, [reactor, &gate, response, &context = incoming.context, caller = *std::move(caller),
             shown = std::move(shown), method = incoming.method, work = std::move(work), error_bytes] {
        AdmittedCall call{caller, reactor->token(), "", false};
        // Callers who gave up while the call waited for a thread are many when somebody resets streams as
        // fast as he opens them.
        absl::Status status = reactor->token().cancelled()
                                  ? absl::CancelledError("the caller gave up before the call began")
                                  : gate.AdmitAnswer(shown.peer, method);
        if (status.ok()) status = RunCatching([&] { return work(call); });
        gate.RecordEnd(&caller, shown, method, call.subject,
                       call.refused ? absl::PermissionDeniedError("") : status);
        const grpc::Status end = ToGrpcStatus(status, error_bytes);
        const size_t bytes = end.ok() ? MemoryOf(*response)
                                      : kCopies * (end.error_message().size() + end.error_details().size());
        reactor->set_answer(HoldAnswer(gate, shown.peer, context, bytes));
        reactor->Finish(end);
      });
  return reactor;
}

}  // namespace fusion
