#include "server/rpc/optimizer_service.h"

#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/monitor/log.h"
#include "base/monitor/trace_context.h"
#include "base/rpc/status_conversion.h"
#include "base/status_macros.h"
#include "server/jobs/job_messages.h"
#include "server/jobs/job_trace.h"
#include "server/jobs/model_report.h"
#include "server/optimize/hints.h"
#include "server/optimize/input_files.h"
#include "server/optimize/library_source.h"
#include "server/optimize/loop_submission.h"
#include "server/optimize/optimize_pipeline.h"
#include "server/optimize/submission.h"
#include "server/parse/parse.h"
#include "server/rpc/chunk_stream.h"
#include "server/rpc/event_stream.h"
#include "server/rpc/job_access.h"
#include "server/rpc/pooled_call.h"
#include "server/rpc/submission_fields.h"

namespace fusion {
namespace {

// A benchmark without a source is one of the library.
v1::SubmitRequest WithSource(const v1::SubmitRequest& request,
                             const std::shared_ptr<const Catalog>& catalog) {
  v1::SubmitRequest wanted = request;
  if (!request.has_benchmark() || request.source().kind_case() != v1::GraphSource::KIND_NOT_SET)
    return wanted;
  wanted.mutable_source()->set_fuse(LibrarySource(catalog));
  wanted.mutable_source()->set_file_name("library.fuse");
  return wanted;
}

// Returns the trace that the caller sent; a new one when it sent none.
TraceContext TraceOf(const grpc::CallbackServerContext& call) {
  const auto header = call.client_metadata().find(kTraceParentHeader);
  if (header == call.client_metadata().end()) return NewTrace();
  const auto given = ParseTraceParent(absl::string_view(header->second.data(), header->second.size()));
  return given ? *given : NewTrace();
}

// Returns the kind of device that a submission asks for; for a repeated request id the kind that it was the
// first time, whatever has joined the farm since.
absl::StatusOr<std::string> KindOf(const ServiceContext& context, const std::string& user,
                                   const v1::SubmitRequest& wanted) {
  if (!wanted.request_id().empty()) {
    const absl::StatusOr<JobRecord> known = context.store.FindRequest(user, wanted.request_id());
    v1::SubmitRequest before;
    if (known.ok() && before.ParseFromString(known->request) &&
        absl::StrContains(absl::AsciiStrToLower(before.device()), absl::AsciiStrToLower(wanted.device())))
      return before.device();
  }
  return context.dispatcher.FindKind(wanted.target(), wanted.device());
}

// Whoever asks again for what was accepted needs no files any more.
bool IsKnown(const ServiceContext& context, const std::string& user, const v1::SubmitRequest& wanted) {
  return !wanted.request_id().empty() && context.store.FindRequest(user, wanted.request_id()).ok();
}

// Hands a job that was checked to the runner. Returns its name.
absl::StatusOr<std::string> Start(const ServiceContext& context, const v1::SubmitRequest& wanted,
                                  const v1::GraphSummary& summary, const TraceContext& trace,
                                  AdmittedCall* admitted, v1::Job* response) {
  FUSION_ASSIGN_OR_RETURN(const JobRecord job,
                          context.runner.Submit(wanted, summary, admitted->caller.name, trace.ToString()));
  admitted->subject = job.id;
  *response = ToMessage(job);
  if (job.state == JobState::kQueued) response->set_waits_for(MissingDevice(wanted, context.dispatcher));
  return job.id;
}

absl::Status SubmitLoops(const ServiceContext& context, const v1::SubmitRequest& wanted,
                         const TraceContext& trace, AdmittedCall* admitted, v1::Job* response) {
  FUSION_ASSIGN_OR_RETURN(const std::shared_ptr<const LoopSubmission> loops, CheckLoopSubmission(wanted));
  if (absl::Status files = CheckInputFiles(context.store, admitted->caller.name, loops->files);
      !files.ok() && !IsKnown(context, admitted->caller.name, wanted))
    return files;
  FUSION_ASSIGN_OR_RETURN(const std::string job,
                          Start(context, wanted, loops->summary, trace, admitted, response));
  HoldInputFiles(context.store, job, loops->files, TimeOfDay()).IgnoreError();
  return absl::OkStatus();
}

}  // namespace

OptimizerServiceImpl::OptimizerServiceImpl(const ServiceContext& context) : context_(context) {}
OptimizerServiceImpl::~OptimizerServiceImpl() = default;

grpc::ServerUnaryReactor* OptimizerServiceImpl::Submit(grpc::CallbackServerContext* call,
                                                       const v1::SubmitRequest* request, v1::Job* response) {
  call->AddInitialMetadata(kSubmissionFieldsHeader, KnownSubmissionFields());
  const IncomingCall incoming{*call, "/fusion.v1.OptimizerService/Submit", *request};
  return RunOnPool(
      context_.requests, context_.gate, incoming,
      [this, request, response, trace = TraceOf(*call)](AdmittedCall& admitted) -> absl::Status {
        const LogScope trace_scope("trace_id", trace.trace_id);
        FUSION_RETURN_IF_ERROR(CheckRequestFields(*request));
        v1::SubmitRequest wanted = WithSource(*request, context_.catalog);
        if (!wanted.device().empty()) {
          absl::StatusOr<std::string> kind = KindOf(context_, admitted.caller.name, wanted);
          if (!kind.ok()) return InvalidField("device", kind.status().message());
          wanted.set_device(*std::move(kind));
        }
        if (wanted.source().has_loops()) return SubmitLoops(context_, wanted, trace, &admitted, response);
        FUSION_ASSIGN_OR_RETURN(Submission source, CheckSubmission(wanted, context_.catalog));
        FUSION_RETURN_IF_ERROR(CheckBuildable(*source.graph));
        if (wanted.has_benchmark()) FUSION_RETURN_IF_ERROR(CheckBenchmark(*source.graph));
        if (auto hints = ResolveHints(*source.graph, wanted.hints()); !hints.ok()) return hints.status();
        if (absl::Status files = CheckInputFiles(context_.store, admitted.caller.name, InputFilesOf(source));
            !files.ok() && !IsKnown(context_, admitted.caller.name, wanted))
          return files;
        FUSION_ASSIGN_OR_RETURN(const std::string job,
                                Start(context_, wanted, source.summary, trace, &admitted, response));
        // While it waits to be begun; then it says itself what is missing.
        HoldInputFiles(context_.store, job, InputFilesOf(source), TimeOfDay()).IgnoreError();
        return absl::OkStatus();
      });
}

grpc::ServerReadReactor<v1::Chunk>* OptimizerServiceImpl::UploadInput(grpc::CallbackServerContext* call,
                                                                      v1::WriteBlobResponse* response) {
  const IncomingCall incoming{*call, "/fusion.v1.OptimizerService/UploadInput", *response};
  return ReceiveBlob(context_.requests, context_.gate, incoming, response,
                     [this](AdmittedCall& admitted, const Blob& blob) -> absl::Status {
                       return StoreInputFile(context_.store, admitted.caller.name, blob.bytes, blob.digest,
                                             TimeOfDay());
                     });
}

grpc::ServerUnaryReactor* OptimizerServiceImpl::GetJob(grpc::CallbackServerContext* call,
                                                       const v1::GetJobRequest* request, v1::Job* response) {
  const IncomingCall incoming{*call, "/fusion.v1.OptimizerService/GetJob", *request};
  return RunOnPool(context_.requests, context_.gate, incoming,
                   [this, request, response](AdmittedCall& admitted) -> absl::Status {
                     FUSION_ASSIGN_OR_RETURN(JobRecord job,
                                             GetJobFor(admitted, context_.store, request->name()));
                     *response = ToMessage(job);
                     response->set_waits_for(context_.runner.WaitsFor(job.id));
                     if (!IsTerminal(job.state)) response->set_stage(context_.runner.StageOf(job.id));
                     return absl::OkStatus();
                   });
}

grpc::ServerUnaryReactor* OptimizerServiceImpl::ListJobs(grpc::CallbackServerContext* call,
                                                         const v1::ListJobsRequest* request,
                                                         v1::ListJobsResponse* response) {
  const IncomingCall incoming{*call, "/fusion.v1.OptimizerService/ListJobs", *request};
  return RunOnPool(
      context_.requests, context_.gate, incoming,
      [this, request, response](AdmittedCall& admitted) -> absl::Status {
        const Principal& caller = admitted.caller;
        FUSION_ASSIGN_OR_RETURN(
            JobPage page,
            caller.role == Role::kAdmin
                ? context_.store.ListJobs(request->page_size(), request->page_token())
                : context_.store.ListJobsOf(caller.name, request->page_size(), request->page_token()));
        for (const JobRecord& job : page.jobs) {
          *response->add_jobs() = ToMessage(job);
          if (!IsTerminal(job.state))
            response->mutable_jobs()->rbegin()->set_waits_for(context_.runner.WaitsFor(job.id));
        }
        response->set_next_page_token(page.next_page_token);
        return absl::OkStatus();
      });
}

grpc::ServerUnaryReactor* OptimizerServiceImpl::CancelJob(grpc::CallbackServerContext* call,
                                                          const v1::CancelJobRequest* request,
                                                          v1::Job* response) {
  const IncomingCall incoming{*call, "/fusion.v1.OptimizerService/CancelJob", *request};
  return RunOnPool(context_.requests, context_.gate, incoming,
                   [this, request, response](AdmittedCall& admitted) -> absl::Status {
                     if (auto mine = GetJobFor(admitted, context_.store, request->name()); !mine.ok())
                       return mine.status();
                     FUSION_ASSIGN_OR_RETURN(JobRecord job, context_.runner.Cancel(request->name()));
                     *response = ToMessage(job);
                     return absl::OkStatus();
                   });
}

grpc::ServerWriteReactor<v1::JobEvent>* OptimizerServiceImpl::WatchJob(grpc::CallbackServerContext* call,
                                                                       const v1::WatchJobRequest* request) {
  const IncomingCall incoming{*call, "/fusion.v1.OptimizerService/WatchJob", *request};
  return StreamEvents({context_.store, context_.watchers, context_.requests, context_.gate}, incoming,
                      request->name(), request->after_sequence(), [this, job = request->name()] {
                        // Whatever is wrong with the job, the stream finds it too and says it.
                        (void)context_.runner.EnsureRunning(job);
                      });
}

grpc::ServerUnaryReactor* OptimizerServiceImpl::Check(grpc::CallbackServerContext* call,
                                                      const v1::CheckRequest* request,
                                                      v1::CheckResponse* response) {
  const IncomingCall incoming{*call, "/fusion.v1.OptimizerService/Check", *request};
  return RunOnPool(context_.requests, context_.gate, incoming,
                   [this, request, response](AdmittedCall& admitted) -> absl::Status {
                     if (request->source().has_loops()) {
                       v1::SubmitRequest submit;
                       *submit.mutable_source() = request->source();
                       FUSION_ASSIGN_OR_RETURN(const auto loops, CheckLoopSubmission(submit));
                       *response->mutable_graph() = loops->summary;
                       *response->mutable_proto() = InputsOf(*loops);
                       return absl::OkStatus();
                     }
                     FUSION_ASSIGN_OR_RETURN(Submission source,
                                             CheckSource(request->source(), context_.catalog));
                     *response->mutable_graph() = source.summary;
                     if (request->brief()) return absl::OkStatus();
                     if (!HasInlineFunctions(*source.graph)) response->set_fuse(PrintFuse(*source.graph));
                     response->set_graphviz(PrintGraphviz(*source.graph));
                     *response->mutable_proto() = ToProto(*source.graph);
                     return absl::OkStatus();
                   });
}

grpc::ServerUnaryReactor* OptimizerServiceImpl::Explain(grpc::CallbackServerContext* call,
                                                        const v1::ExplainRequest* request,
                                                        v1::ExplainResponse* response) {
  call->AddInitialMetadata(kExplanationFieldsHeader, KnownExplanationFields());
  const IncomingCall incoming{*call, "/fusion.v1.OptimizerService/Explain", *request};
  return RunOnPool(
      context_.searches, context_.gate, incoming,
      [this, request, response](AdmittedCall& admitted) -> absl::Status {
        FUSION_RETURN_IF_ERROR(CheckRequestFields(*request));
        v1::ExplainRequest wanted = *request;
        if (!wanted.device().empty()) {
          absl::StatusOr<std::string> kind = context_.dispatcher.FindKind(wanted.target(), wanted.device());
          if (!kind.ok()) return InvalidField("device", kind.status().message());
          wanted.set_device(*std::move(kind));
        }
        PipelineContext pipeline{context_.store,
                                 context_.dispatcher,
                                 context_.search_pool,
                                 context_.catalog,
                                 "",
                                 admitted.token,
                                 nullptr,
                                 context_.dump_directory};
        FUSION_ASSIGN_OR_RETURN(v1::ExplainResponse explained, ExplainPipeline(wanted, pipeline));
        *response = std::move(explained);
        return absl::OkStatus();
      });
}

grpc::ServerWriteReactor<v1::Chunk>* OptimizerServiceImpl::DownloadArtifact(
    grpc::CallbackServerContext* call, const v1::DownloadArtifactRequest* request) {
  const int rank = request->rank() == 0 ? 1 : request->rank();
  const IncomingCall incoming{*call, "/fusion.v1.OptimizerService/DownloadArtifact", *request};
  return SendBlob(
      context_.requests, context_.gate, incoming,
      [this, job = request->job(), rank](AdmittedCall& admitted) -> absl::StatusOr<Blob> {
        FUSION_ASSIGN_OR_RETURN(JobRecord record, GetJobFor(admitted, context_.store, job));
        if (record.state != JobState::kSucceeded)
          return absl::FailedPreconditionError(absl::StrCat(
              job, " is ", JobStateName(record.state), "; only a job that SUCCEEDED has exported folders"));
        FUSION_ASSIGN_OR_RETURN(std::string digest, context_.store.GetArtifact(job, rank));
        FUSION_ASSIGN_OR_RETURN(std::string bytes, context_.store.GetBlob(digest));
        return Blob{digest, std::move(bytes)};
      });
}

grpc::ServerUnaryReactor* OptimizerServiceImpl::ListFunctions(grpc::CallbackServerContext* call,
                                                              const v1::ListFunctionsRequest* request,
                                                              v1::ListFunctionsResponse* response) {
  const IncomingCall incoming{*call, "/fusion.v1.OptimizerService/ListFunctions", *request};
  return RunOnPool(context_.requests, context_.gate, incoming,
                   [this, request, response](AdmittedCall& admitted) -> absl::Status {
                     response->set_library_hash(context_.catalog->hash());
                     for (const v1::FunctionDefinition& function : context_.catalog->definitions())
                       if (request->name().empty() || request->name() == function.name())
                         *response->add_functions() = function;
                     if (request->name().empty() || response->functions_size() > 0) return absl::OkStatus();
                     const std::string suggestion = context_.catalog->Suggest(request->name());
                     return absl::NotFoundError(absl::StrCat(
                         "no function is called ", request->name(),
                         suggestion.empty() ? "" : absl::StrCat("; did you mean ", suggestion, "?")));
                   });
}

grpc::ServerUnaryReactor* OptimizerServiceImpl::ReportModel(grpc::CallbackServerContext* call,
                                                            const v1::ReportModelRequest* request,
                                                            v1::ReportModelResponse* response) {
  const IncomingCall incoming{*call, "/fusion.v1.OptimizerService/ReportModel", *request};
  return RunOnPool(context_.searches, context_.gate, incoming,
                   [this, request, response](AdmittedCall& admitted) -> absl::Status {
                     FUSION_ASSIGN_OR_RETURN(
                         v1::ReportModelResponse report,
                         fusion::ReportModel(*request, context_.store, admitted.caller, admitted.token));
                     *response = std::move(report);
                     return absl::OkStatus();
                   });
}

grpc::ServerUnaryReactor* OptimizerServiceImpl::TraceJob(grpc::CallbackServerContext* call,
                                                         const v1::TraceJobRequest* request,
                                                         v1::TraceJobResponse* response) {
  const IncomingCall incoming{*call, "/fusion.v1.OptimizerService/TraceJob", *request};
  return RunOnPool(context_.requests, context_.gate, incoming,
                   [this, request, response](AdmittedCall& admitted) -> absl::Status {
                     // Others' jobs are not there.
                     FUSION_RETURN_IF_ERROR(GetJobFor(admitted, context_.store, request->name()).status());
                     FUSION_ASSIGN_OR_RETURN(std::string trace,
                                             TraceOfJob(context_.store, request->name(), TimeOfDay()));
                     response->set_trace_json(std::move(trace));
                     return absl::OkStatus();
                   });
}

}  // namespace fusion
