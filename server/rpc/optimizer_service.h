// gRPC adapter of OptimizerService: reads the request, calls the program, fills the response. It has no
// logic of its own.
#pragma once

#include "fusion/v1/optimizer.grpc.pb.h"
#include "server/rpc/service_context.h"

namespace fusion {

// Thread safe.
class OptimizerServiceImpl : public v1::OptimizerService::CallbackService {
 public:
  // This is not inline: callers need not compile the handlers of all methods.
  explicit OptimizerServiceImpl(const ServiceContext& context);
  ~OptimizerServiceImpl() override;

  // The graph is checked before the job exists, and the job is stored before the answer.
  grpc::ServerUnaryReactor* Submit(grpc::CallbackServerContext* call, const v1::SubmitRequest* request,
                                   v1::Job* response) override;
  // A caller's input counts among the answers that wait for that caller until it is stored.
  grpc::ServerReadReactor<v1::Chunk>* UploadInput(grpc::CallbackServerContext* call,
                                                  v1::WriteBlobResponse* response) override;
  grpc::ServerUnaryReactor* GetJob(grpc::CallbackServerContext* call, const v1::GetJobRequest* request,
                                   v1::Job* response) override;
  grpc::ServerUnaryReactor* ListJobs(grpc::CallbackServerContext* call, const v1::ListJobsRequest* request,
                                     v1::ListJobsResponse* response) override;
  grpc::ServerUnaryReactor* CancelJob(grpc::CallbackServerContext* call, const v1::CancelJobRequest* request,
                                      v1::Job* response) override;
  // An unfinished job that is not running here (an embedded server was interrupted) is taken up again.
  grpc::ServerWriteReactor<v1::JobEvent>* WatchJob(grpc::CallbackServerContext* call,
                                                   const v1::WatchJobRequest* request) override;
  grpc::ServerUnaryReactor* Check(grpc::CallbackServerContext* call, const v1::CheckRequest* request,
                                  v1::CheckResponse* response) override;
  grpc::ServerUnaryReactor* Explain(grpc::CallbackServerContext* call, const v1::ExplainRequest* request,
                                    v1::ExplainResponse* response) override;
  grpc::ServerWriteReactor<v1::Chunk>* DownloadArtifact(grpc::CallbackServerContext* call,
                                                        const v1::DownloadArtifactRequest* request) override;
  grpc::ServerUnaryReactor* ListFunctions(grpc::CallbackServerContext* call,
                                          const v1::ListFunctionsRequest* request,
                                          v1::ListFunctionsResponse* response) override;
  grpc::ServerUnaryReactor* ReportModel(grpc::CallbackServerContext* call,
                                        const v1::ReportModelRequest* request,
                                        v1::ReportModelResponse* response) override;
  grpc::ServerUnaryReactor* TraceJob(grpc::CallbackServerContext* call, const v1::TraceJobRequest* request,
                                     v1::TraceJobResponse* response) override;

 private:
  const ServiceContext context_;
};

}  // namespace fusion
