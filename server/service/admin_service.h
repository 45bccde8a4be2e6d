// gRPC adapter of AdminService.
#pragma once

#include <string>

#include "fusion/v1/admin.grpc.pb.h"
#include "server/service/service_context.h"

namespace fusion {

// Thread safe.
class AdminServiceImpl : public v1::AdminService::CallbackService {
 public:
  AdminServiceImpl(const ServiceContext& context, std::string data_directory)
      : context_(context), data_directory_(std::move(data_directory)) {}

  grpc::ServerUnaryReactor* BackUp(grpc::CallbackServerContext* call, const v1::BackUpRequest* request,
                                   v1::BackUpResponse* response) override;

 private:
  const ServiceContext context_;
  const std::string data_directory_;
};

}  // namespace fusion
