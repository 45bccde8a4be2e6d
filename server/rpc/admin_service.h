// gRPC adapter of AdminService.
#pragma once

#include <string>
#include <utility>

#include "fusion/v1/admin.grpc.pb.h"
#include "server/identity/token_registry.h"
#include "server/rpc/service_context.h"

namespace fusion {

// Thread safe. The registry outlives it.
class AdminServiceImpl : public v1::AdminService::CallbackService {
 public:
  // This is not inline: callers need not compile the handlers of all methods.
  AdminServiceImpl(const ServiceContext& context, TokenRegistry& tokens, std::string data_directory);
  ~AdminServiceImpl() override;

  // InvalidArgument: the role or the principal is not valid, or the seconds are no time.
  grpc::ServerUnaryReactor* CreateToken(grpc::CallbackServerContext* call,
                                        const v1::CreateTokenRequest* request,
                                        v1::CreateTokenResponse* response) override;
  grpc::ServerUnaryReactor* ListTokens(grpc::CallbackServerContext* call,
                                       const v1::ListTokensRequest* request,
                                       v1::ListTokensResponse* response) override;
  // NotFound: no such token.
  grpc::ServerUnaryReactor* RevokeToken(grpc::CallbackServerContext* call,
                                        const v1::RevokeTokenRequest* request, v1::Token* response) override;
  // Everything that was recorded before the call is in it.
  grpc::ServerUnaryReactor* ListAuditEntries(grpc::CallbackServerContext* call,
                                             const v1::ListAuditEntriesRequest* request,
                                             v1::ListAuditEntriesResponse* response) override;
  grpc::ServerUnaryReactor* BackUp(grpc::CallbackServerContext* call, const v1::BackUpRequest* request,
                                   v1::BackUpResponse* response) override;
  // InvalidArgument: no device is named, or one and all; NotFound: nothing is stored of the device.
  grpc::ServerUnaryReactor* ResetModel(grpc::CallbackServerContext* call,
                                       const v1::ResetModelRequest* request,
                                       v1::ResetModelResponse* response) override;

 private:
  const ServiceContext context_;
  TokenRegistry& tokens_;
  const std::string data_directory_;
};

}  // namespace fusion
