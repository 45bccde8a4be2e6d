#include "server/service/admin_service.h"

#include <utility>

#include "server/service/backup.h"
#include "server/service/job_messages.h"
#include "server/service/pooled_call.h"

namespace fusion {

grpc::ServerUnaryReactor* AdminServiceImpl::BackUp(grpc::CallbackServerContext* call,
                                                   const v1::BackUpRequest* request,
                                                   v1::BackUpResponse* response) {
  // On the pool for longer work: a large database takes a while.
  return RunOnPool(context_.searches, *call, [this, response](const CancellationToken&) -> absl::Status {
    absl::StatusOr<v1::BackUpResponse> written = BackUpStore(context_.store, data_directory_, Now());
    if (!written.ok()) return written.status();
    *response = *std::move(written);
    return absl::OkStatus();
  });
}

}  // namespace fusion
