// SessionData's runs of programs, and what is said of one that was inspected.
#include <bit>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "worker/measure/session_data.h"

namespace fusion {
namespace {

// "y: entry 17", with the row and the column where it has them.
std::string PlaceOf(const v1::Buffer& buffer, int64_t i) {
  std::string place = absl::StrFormat("%s: entry %d", buffer.name(), i);
  if (buffer.rows() == 0 || buffer.row_stride() == 0) return place;
  const int64_t line = i / buffer.row_stride(), of_matrix = buffer.rows() * buffer.row_stride();
  if (of_matrix < buffer.count()) absl::StrAppendFormat(&place, ", element %d", i / of_matrix);
  absl::StrAppendFormat(&place, ", row %d, column %d,", line % buffer.rows(), i % buffer.row_stride());
  return place;
}

}  // namespace

absl::StatusOr<double> SessionData::Run(PreparedProgram& program, bool flush_cache, int repeat, int lead,
                                        RunCalls calls) {
  RunOptions options;
  options.poison = program.poison;
  options.restore = program.restore;
  options.flush_cache = flush_cache;
  options.repeat = repeat;
  options.lead = lead;
  options.kept = &program.repeated;
  options.before_launch = std::move(calls.before_launch);
  options.after_run = std::move(calls.after_run);
  return backend_->Run(program.launches, options);
}

absl::StatusOr<double> SessionData::RunInspected(PreparedProgram& program, bool flush_cache, RunCalls calls) {
  scratch_->Lay(program.temporaries);
  const std::vector<Inspection> inspections = Inspections();
  RunOptions options;
  options.poison = program.poison;
  options.restore = program.restore;
  options.guards = scratch_->guards();
  options.order = calls.order;
  options.one_thread = calls.one_thread;
  options.flush_cache = flush_cache;
  options.before_launch = std::move(calls.before_launch);
  options.after_run = std::move(calls.after_run);
  options.inspections = inspections;
  options.inspected = &inspected_;
  inspected_ = {};
  return backend_->Run(program.launches, options);
}

// In the order in which Judge reads what was found.
std::vector<Inspection> SessionData::Inspections() const {
  std::vector<Inspection> inspections;
  for (const Place& output : outputs_)
    inspections.push_back(
        {.kind = Inspection::Kind::kHash, .range = {output.reference, output.buffer.count() * 8}});
  if (excused_ != nullptr)
    for (const GuardedMemory::Buffer& excused : excused_->buffers())
      inspections.push_back({.kind = Inspection::Kind::kHash, .range = excused.range});
  for (const GuardedMemory* guarded : {memory_.get(), scratch_.get()})
    for (const MemoryRange& guard : guarded->guards())
      inspections.push_back({.kind = Inspection::Kind::kGuard, .range = guard});
  for (const Place& input : inputs_)
    inspections.push_back({.kind = Inspection::Kind::kHash, .range = input.range});
  for (size_t i = 0; i < outputs_.size(); ++i)
    inspections.push_back({.kind = Inspection::Kind::kCompare,
                           .range = outputs_[i].range,
                           .type = outputs_[i].buffer.data_type(),
                           .reference = outputs_[i].reference,
                           .scale = outputs_[i].scale,
                           .excused = Excused(i)});
  return inspections;
}

absl::StatusOr<Verdict> SessionData::Judge(bool is_unfused, ActivityPage* activity) {
  Verdict verdict;
  auto fail = [&](const std::string& message) {
    if (verdict.outcome == v1::OK) verdict.message = message;
    verdict.outcome = v1::WRONG_RESULT;
  };
  const std::vector<uint64_t>& found = inspected_.found;
  size_t next = 0;
  for (const Place& output : outputs_)
    if (found[next++] != output.hash)
      return absl::AbortedError("wrote outside its buffers, into the reference results");
  if (excused_ != nullptr)
    for (const Place& output : outputs_)
      if (found[next++] != output.excused_hash)
        return absl::AbortedError("wrote outside its buffers, into what is known of rounding");
  for (GuardedMemory* guarded : {memory_.get(), scratch_.get()}) {
    bool whole = true;
    for (size_t i = 0; i < guarded->guards().size(); ++i) whole &= found[next++] == 0;
    if (whole) continue;
    FUSION_ASSIGN_OR_RETURN(const std::string damage, guarded->Check());
    fail(damage);
    FUSION_RETURN_IF_ERROR(guarded->Arm());
  }
  for (Place& input : inputs_) {
    if (found[next++] == input.hash) continue;
    fail(absl::StrCat("changed the input ", input.buffer.name()));
    FUSION_RETURN_IF_ERROR(FillInput(&input));
  }
  FUSION_ASSIGN_OR_RETURN(const Verdict compared,
                          JudgeOutputs(absl::MakeConstSpan(found).subspan(next), is_unfused, activity));
  verdict.max_relative_error = compared.max_relative_error;
  verdict.tolerance = compared.tolerance;
  if (compared.outcome != v1::OK) fail(compared.message);
  return verdict;
}

double SessionData::Tolerance(size_t output) const {
  if (outputs_[output].is_exact) return 0;
  return static_cast<int>(output) < session_.tolerances_size() ? session_.tolerances(static_cast<int>(output))
                                                               : 0;
}

absl::StatusOr<Verdict> SessionData::JudgeOutputs(absl::Span<const uint64_t> errors, bool is_unfused,
                                                  ActivityPage* activity) {
  // Sums of larger numbers may be rounded on the way.
  constexpr double kMostWholeF32 = 0x1p22, kMostWholeF64 = 0x1p51;
  const bool has_whole_data =
      pattern_.kind == DataPattern::Kind::kWhole || pattern_.kind == DataPattern::Kind::kNegative;
  Verdict verdict;
  double worst = -1;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    Place& output = outputs_[i];
    const double tolerance = Tolerance(i);
    double error = std::bit_cast<double>(errors[i]);
    Comparison comparison;
    if (!(error <= tolerance) && verdict.outcome == v1::OK) {
      if (!rounding_estimated_ && !output.is_exact) FUSION_RETURN_IF_ERROR(EstimateRounding(activity));
      FUSION_ASSIGN_OR_RETURN(
          comparison, backend_->Compare(output.range.address, output.buffer.data_type(), output.reference,
                                        output.buffer.count(), output.scale, Excused(i)));
      error = comparison.max_relative_error;
    }
    if (!(error <= tolerance) && verdict.outcome == v1::OK) {
      verdict.outcome = v1::WRONG_RESULT;
      FUSION_ASSIGN_OR_RETURN(const std::string entry, DescribeEntry(output, comparison));
      verdict.message =
          absl::StrCat(entry, absl::StrFormat(" (relative error %.3g, allowed %.3g)", error, tolerance));
    }
    if (is_unfused && has_whole_data && error == 0 && static_cast<int>(i) < session_.whole_outputs_size() &&
        session_.whole_outputs(static_cast<int>(i)) &&
        output.largest <= (output.buffer.data_type() == v1::F64 ? kMostWholeF64 : kMostWholeF32))
      output.is_exact = true;
    const double ratio = error == 0 ? 0 : error / tolerance;
    if (ratio > worst) {
      worst = ratio;
      verdict.max_relative_error = error;
      verdict.tolerance = tolerance;
    }
  }
  return verdict;
}

absl::StatusOr<std::string> SessionData::DescribeEntry(const Place& output, const Comparison& comparison) {
  const int64_t i = comparison.worst_index;
  double reference = 0, wide = 0;
  float narrow = 0;
  FUSION_RETURN_IF_ERROR(backend_->CopyOut(&reference, output.reference + i * 8, 8));
  if (output.buffer.data_type() == v1::F64) {
    FUSION_RETURN_IF_ERROR(backend_->CopyOut(&wide, output.range.address + i * 8, 8));
  } else {
    FUSION_RETURN_IF_ERROR(backend_->CopyOut(&narrow, output.range.address + i * 4, 4));
    wide = output.buffer.data_type() == v1::I32 ? std::bit_cast<int32_t>(narrow) : narrow;
  }
  uint32_t narrow_bits = 0;
  uint64_t wide_bits = 0;
  std::memcpy(&narrow_bits, &narrow, 4);
  std::memcpy(&wide_bits, &wide, 8);
  const bool untouched =
      output.buffer.data_type() == v1::F64 ? wide_bits == ~uint64_t{0} : narrow_bits == ~uint32_t{0};
  const std::string place = PlaceOf(output.buffer, i);
  if (untouched) return absl::StrFormat("output %s was not written and should be %.9g", place, reference);
  return absl::StrFormat("output %s is %.9g and should be %.9g", place, wide, reference);
}

}  // namespace fusion
