#include "server/rpc/admin_service.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/rpc/status_conversion.h"
#include "base/status_macros.h"
#include "server/jobs/job_messages.h"
#include "server/optimize/model_reset.h"
#include "server/rpc/pooled_call.h"
#include "server/upkeep/backup.h"

namespace fusion {
namespace {

v1::Role RoleOf(const std::string& name) {
  v1::Role role = v1::ROLE_UNSPECIFIED;
  v1::Role_Parse(name, &role);
  return role;
}

v1::Token ToMessage(const TokenRecord& record) {
  v1::Token token;
  token.set_name(record.id);
  token.set_principal(record.principal);
  token.set_role(RoleOf(record.role));
  *token.mutable_create_time() = fusion::ToMessage(record.created);
  if (record.expires != Timestamp()) *token.mutable_expire_time() = fusion::ToMessage(record.expires);
  if (record.revoked != Timestamp()) *token.mutable_revoke_time() = fusion::ToMessage(record.revoked);
  for (std::string& scope : Scopes::Stored(record.scopes).Names()) token.add_scopes(std::move(scope));
  return token;
}

v1::AuditEntry ToMessage(const AuditRecord& record) {
  v1::AuditEntry entry;
  entry.set_number(record.number);
  *entry.mutable_time() = fusion::ToMessage(record.time);
  entry.set_principal(record.principal);
  entry.set_role(RoleOf(record.role));
  entry.set_peer(record.peer);
  entry.set_method(record.method);
  entry.set_subject(record.subject);
  entry.set_outcome(record.outcome);
  return entry;
}

}  // namespace

AdminServiceImpl::AdminServiceImpl(const ServiceContext& context, TokenRegistry& tokens,
                                   std::string data_directory)
    : context_(context), tokens_(tokens), data_directory_(std::move(data_directory)) {}
AdminServiceImpl::~AdminServiceImpl() = default;

grpc::ServerUnaryReactor* AdminServiceImpl::CreateToken(grpc::CallbackServerContext* call,
                                                        const v1::CreateTokenRequest* request,
                                                        v1::CreateTokenResponse* response) {
  const IncomingCall incoming{*call, "/fusion.v1.AdminService/CreateToken", *request};
  return RunOnPool(context_.requests, context_.gate, incoming,
                   [this, request, response](AdmittedCall& admitted) -> absl::Status {
                     const std::optional<Role> role = ParseRole(v1::Role_Name(request->role()));
                     if (!role) return InvalidField("role", "must be USER, WORKER or ADMIN");
                     FUSION_ASSIGN_OR_RETURN(
                         Scopes scopes, Scopes::Parse({request->scopes().begin(), request->scopes().end()}));
                     // Or its owner would give himself what he was not given.
                     if (!admitted.caller.scopes.Contains(scopes))
                       return absl::PermissionDeniedError(
                           absl::StrCat("the token of ", admitted.caller.name, " is limited to ",
                                        absl::StrJoin(admitted.caller.scopes.Names(), ", "),
                                        ": it can make tokens with these scopes alone"));
                     FUSION_ASSIGN_OR_RETURN(CreatedToken created,
                                             tokens_.Create(request->principal(), *role,
                                                            std::chrono::duration<double>(request->seconds()),
                                                            TimeOfDay(), scopes));
                     admitted.subject = created.record.id;
                     *response->mutable_token() = ToMessage(created.record);
                     response->set_secret(std::move(created.text));
                     return absl::OkStatus();
                   });
}

grpc::ServerUnaryReactor* AdminServiceImpl::ListTokens(grpc::CallbackServerContext* call,
                                                       const v1::ListTokensRequest* request,
                                                       v1::ListTokensResponse* response) {
  const IncomingCall incoming{*call, "/fusion.v1.AdminService/ListTokens", *request};
  return RunOnPool(context_.requests, context_.gate, incoming,
                   [this, response](AdmittedCall&) -> absl::Status {
                     FUSION_ASSIGN_OR_RETURN(std::vector<TokenRecord> tokens, tokens_.List());
                     for (const TokenRecord& token : tokens) *response->add_tokens() = ToMessage(token);
                     return absl::OkStatus();
                   });
}

grpc::ServerUnaryReactor* AdminServiceImpl::RevokeToken(grpc::CallbackServerContext* call,
                                                        const v1::RevokeTokenRequest* request,
                                                        v1::Token* response) {
  const IncomingCall incoming{*call, "/fusion.v1.AdminService/RevokeToken", *request};
  return RunOnPool(context_.requests, context_.gate, incoming,
                   [this, request, response](AdmittedCall& admitted) -> absl::Status {
                     admitted.subject = request->name();
                     FUSION_ASSIGN_OR_RETURN(TokenRecord token, tokens_.Revoke(request->name(), TimeOfDay()));
                     *response = ToMessage(token);
                     return absl::OkStatus();
                   });
}

grpc::ServerUnaryReactor* AdminServiceImpl::ListAuditEntries(grpc::CallbackServerContext* call,
                                                             const v1::ListAuditEntriesRequest* request,
                                                             v1::ListAuditEntriesResponse* response) {
  const IncomingCall incoming{*call, "/fusion.v1.AdminService/ListAuditEntries", *request};
  return RunOnPool(
      context_.requests, context_.gate, incoming, [this, request, response](AdmittedCall&) -> absl::Status {
        context_.gate.audit().Flush();
        FUSION_ASSIGN_OR_RETURN(AuditPage page,
                                context_.store.ListAuditEntries(request->page_size(), request->page_token()));
        for (const AuditRecord& entry : page.entries) *response->add_entries() = ToMessage(entry);
        response->set_next_page_token(page.next_page_token);
        return absl::OkStatus();
      });
}

grpc::ServerUnaryReactor* AdminServiceImpl::BackUp(grpc::CallbackServerContext* call,
                                                   const v1::BackUpRequest* request,
                                                   v1::BackUpResponse* response) {
  const IncomingCall incoming{*call, "/fusion.v1.AdminService/BackUp", *request};
  // On the pool for longer work: a large database takes a while.
  return RunOnPool(context_.searches, context_.gate, incoming,
                   [this, response](AdmittedCall& admitted) -> absl::Status {
                     FUSION_ASSIGN_OR_RETURN(v1::BackUpResponse written,
                                             BackUpStore(context_.store, data_directory_, TimeOfDay()));
                     admitted.subject = written.path();
                     *response = std::move(written);
                     return absl::OkStatus();
                   });
}

grpc::ServerUnaryReactor* AdminServiceImpl::ResetModel(grpc::CallbackServerContext* call,
                                                       const v1::ResetModelRequest* request,
                                                       v1::ResetModelResponse* response) {
  const IncomingCall incoming{*call, "/fusion.v1.AdminService/ResetModel", *request};
  return RunOnPool(context_.requests, context_.gate, incoming,
                   [this, request, response](AdmittedCall& admitted) -> absl::Status {
                     admitted.subject = request->all() ? "all devices" : request->device();
                     FUSION_ASSIGN_OR_RETURN(v1::ResetModelResponse forgotten,
                                             fusion::ResetModel(*request, context_.store));
                     *response = std::move(forgotten);
                     return absl::OkStatus();
                   });
}

}  // namespace fusion
