// gRPC adapter of TunerService.
#pragma once

#include "fusion/v1/tuner.grpc.pb.h"
#include "server/rpc/service_context.h"
#include "server/tuner/tuning_registry.h"

namespace fusion {

// This is v1::TunerService::CallbackService, but the messages of Tune come as bytes (StartTuneStream).
using TunerCallbacks = v1::TunerService::WithRawCallbackMethod_Tune<
    v1::TunerService::WithCallbackMethod_ListTunings<v1::TunerService::WithCallbackMethod_GetTuning<
        v1::TunerService::WithCallbackMethod_WatchTuning<v1::TunerService::WithCallbackMethod_ResetTuning<
            v1::TunerService::WithCallbackMethod_ListTuningReports<v1::TunerService::Service>>>>>>;

// Thread safe. The registry outlives it.
class TunerServiceImpl : public TunerCallbacks {
 public:
  // This is not inline: callers need not compile the handlers of all methods.
  TunerServiceImpl(const ServiceContext& context, TuningRegistry& tunings);
  ~TunerServiceImpl() override;

  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* Tune(
      grpc::CallbackServerContext* call) override;
  grpc::ServerUnaryReactor* ListTunings(grpc::CallbackServerContext* call,
                                        const v1::ListTuningsRequest* request,
                                        v1::ListTuningsResponse* response) override;
  // NotFound, here and below: no such tuning.
  grpc::ServerUnaryReactor* GetTuning(grpc::CallbackServerContext* call, const v1::GetTuningRequest* request,
                                      v1::TuningDetails* response) override;
  grpc::ServerWriteReactor<v1::Tuning>* WatchTuning(grpc::CallbackServerContext* call,
                                                    const v1::WatchTuningRequest* request) override;
  grpc::ServerUnaryReactor* ResetTuning(grpc::CallbackServerContext* call,
                                        const v1::ResetTuningRequest* request, v1::Tuning* response) override;
  grpc::ServerUnaryReactor* ListTuningReports(grpc::CallbackServerContext* call,
                                              const v1::ListTuningReportsRequest* request,
                                              v1::ListTuningReportsResponse* response) override;

 private:
  const ServiceContext context_;
  TuningRegistry& tunings_;
};

}  // namespace fusion
