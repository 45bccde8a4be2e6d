// gRPC adapter of TunerService.
#pragma once

#include "fusion/v1/tuner.grpc.pb.h"
#include "server/service/service_context.h"
#include "server/tuner/tuning_registry.h"

namespace fusion {

// Thread safe. The registry outlives it.
class TunerServiceImpl : public v1::TunerService::CallbackService {
 public:
  // Not inline: whoever makes one need not compile the handlers of all methods.
  TunerServiceImpl(const ServiceContext& context, TuningRegistry& tunings);
  ~TunerServiceImpl() override;

  grpc::ServerBidiReactor<v1::TuneRequest, v1::TuneResponse>* Tune(
      grpc::CallbackServerContext* call) override;
  grpc::ServerUnaryReactor* ListTunings(grpc::CallbackServerContext* call,
                                        const v1::ListTuningsRequest* request,
                                        v1::ListTuningsResponse* response) override;
  // NotFound, here and below.
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
