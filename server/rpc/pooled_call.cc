#include "server/rpc/pooled_call.h"

#include <grpcpp/server_context.h>

#include <algorithm>
#include <exception>
#include <new>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/rpc/status_conversion.h"
#include "server/identity/shown_credentials.h"

namespace fusion {
namespace {

class PooledReactor : public grpc::ServerUnaryReactor {
 public:
  void OnCancel() override { token_.Cancel(); }
  void OnDone() override { delete this; }
  const CancellationToken& token() const { return token_; }

 private:
  CancellationToken token_;
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

grpc::ServerUnaryReactor* RunOnPool(boost::asio::thread_pool& pool, AccessGate& gate,
                                    const IncomingCall& incoming,
                                    std::function<absl::Status(AdmittedCall&)> work) {
  auto* reactor = new PooledReactor();
  const size_t error_bytes = AcceptedErrorBytes(incoming.context);
  ShownCredentials shown = ShownBy(incoming.context, gate);
  absl::StatusOr<Principal> caller = gate.Admit(shown, incoming.method, incoming.request.ByteSizeLong());
  if (!caller.ok()) {
    reactor->Finish(ToGrpcStatus(caller.status(), error_bytes));
    return reactor;
  }
  boost::asio::post(pool, [reactor, &gate, caller = *std::move(caller), shown = std::move(shown),
                           method = incoming.method, work = std::move(work), error_bytes] {
    AdmittedCall call{caller, reactor->token(), "", false};
    // Callers who gave up while the call waited for a thread are many when somebody resets streams as
    // fast as he opens them.
    absl::Status status = reactor->token().cancelled()
                              ? absl::CancelledError("the caller gave up before the call began")
                              : RunCatching([&] { return work(call); });
    gate.RecordEnd(&caller, shown, method, call.subject,
                   call.refused ? absl::PermissionDeniedError("") : status);
    reactor->Finish(ToGrpcStatus(status, error_bytes));
  });
  return reactor;
}

}  // namespace fusion
