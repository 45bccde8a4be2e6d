#include "server/rpc/tuner_service.h"

#include <utility>

#include "server/rpc/pooled_call.h"
#include "server/rpc/tune_stream.h"
#include "server/rpc/tuning_watch.h"

namespace fusion {
namespace {

// The value into *response, or why there is none.
template <typename Message>
absl::Status Answer(absl::StatusOr<Message> value, Message* response) {
  if (!value.ok()) return value.status();
  *response = *std::move(value);
  return absl::OkStatus();
}

}  // namespace

TunerServiceImpl::TunerServiceImpl(const ServiceContext& context, TuningRegistry& tunings)
    : context_(context), tunings_(tunings) {}
TunerServiceImpl::~TunerServiceImpl() = default;

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* TunerServiceImpl::Tune(
    grpc::CallbackServerContext* call) {
  return StartTuneStream(tunings_, context_.requests, context_.gate, *call);
}

grpc::ServerWriteReactor<v1::Tuning>* TunerServiceImpl::WatchTuning(grpc::CallbackServerContext* call,
                                                                    const v1::WatchTuningRequest* request) {
  const IncomingCall incoming{*call, "/fusion.v1.TunerService/WatchTuning", *request};
  return StartTuningWatch(tunings_, context_.watchers, context_.requests, context_.gate, incoming,
                          request->name());
}

grpc::ServerUnaryReactor* TunerServiceImpl::ListTunings(grpc::CallbackServerContext* call,
                                                        const v1::ListTuningsRequest* request,
                                                        v1::ListTuningsResponse* response) {
  const IncomingCall incoming{*call, "/fusion.v1.TunerService/ListTunings", *request};
  return RunOnPool(context_.requests, context_.gate, incoming, [this, request, response](AdmittedCall&) {
    return Answer(tunings_.List(*request), response);
  });
}

grpc::ServerUnaryReactor* TunerServiceImpl::GetTuning(grpc::CallbackServerContext* call,
                                                      const v1::GetTuningRequest* request,
                                                      v1::TuningDetails* response) {
  const IncomingCall incoming{*call, "/fusion.v1.TunerService/GetTuning", *request};
  return RunOnPool(context_.requests, context_.gate, incoming, [this, request, response](AdmittedCall&) {
    return Answer(tunings_.Details(request->name()), response);
  });
}

grpc::ServerUnaryReactor* TunerServiceImpl::ResetTuning(grpc::CallbackServerContext* call,
                                                        const v1::ResetTuningRequest* request,
                                                        v1::Tuning* response) {
  const IncomingCall incoming{*call, "/fusion.v1.TunerService/ResetTuning", *request};
  return RunOnPool(context_.requests, context_.gate, incoming,
                   [this, request, response](AdmittedCall& admitted) {
                     admitted.subject = request->name();
                     return Answer(tunings_.Reset(request->name()), response);
                   });
}

grpc::ServerUnaryReactor* TunerServiceImpl::ListTuningReports(grpc::CallbackServerContext* call,
                                                              const v1::ListTuningReportsRequest* request,
                                                              v1::ListTuningReportsResponse* response) {
  const IncomingCall incoming{*call, "/fusion.v1.TunerService/ListTuningReports", *request};
  return RunOnPool(context_.requests, context_.gate, incoming, [this, request, response](AdmittedCall&) {
    return Answer(tunings_.Reports(*request), response);
  });
}

}  // namespace fusion
