#include "tests/property/functions/host_interpreter.h"

#include <limits>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "library/device/fusion_device.h"
#include "tests/property/functions/routine_table.h"

namespace fusion::testing {
namespace {

template <class T>
absl::StatusOr<EntryRoutine<T>> FindEntryRoutine(const std::string& name) {
  auto it = EntryRoutines().find(name);
  if (it == EntryRoutines().end()) {
    return absl::NotFoundError(absl::StrCat("routine ", name, " is not in routine_table.cc"));
  }
  if constexpr (std::is_same_v<T, float>) {
    return it->second.f32;
  } else {
    return it->second.f64;
  }
}

int64_t SizeOf(const Extent& extent, int64_t elements) {
  return extent.name.empty() ? extent.constant : elements;
}

// Index space, addresses and entries of one call.
template <class T>
class Interpreter {
 public:
  explicit Interpreter(const HostCall<T>& host) : host_(host), call_(*host.call) {
    for (const ResolvedDimension& dimension : call_.dimensions) {
      extents_.push_back(SizeOf(dimension.extent, host.elements));
    }
    entries_ = call_.result.element_entries();
    int64_t points = entries_;
    for (const Extent& extent : call_.result.extents) points *= SizeOf(extent, host.elements);
    // An entry that no routine writes stays NaN.
    result_.assign(points, std::numeric_limits<T>::quiet_NaN());
  }

  absl::StatusOr<std::vector<T>> Run() {
    absl::Status status;
    switch (call_.overload->form) {
      case v1::REDUCE:
        status = RunReduce();
        break;
      case v1::ELEMENT:
        status = RunElement();
        break;
      default:
        status = RunMap();
    }
    if (!status.ok()) return status;
    return result_;
  }

 private:
  // Row-major position of a point in a value that follows `map`.
  int64_t Offset(const std::vector<int>& map, const std::vector<int64_t>& point) const {
    int64_t offset = 0;
    for (int dimension : map) offset = offset * extents_[dimension] + point[dimension];
    return offset;
  }

  T Entry(int operand, const std::vector<int64_t>& point, int64_t entry) const {
    int64_t entries = host_.types[operand].element_entries();
    int64_t offset = Offset(call_.operand_maps[operand], point);
    return host_.operands[operand][offset * entries + (entries == 1 ? 0 : entry)];
  }

  // Next point in row-major order over the dimensions of one kind; false after the last.
  bool Advance(std::vector<int64_t>* point, v1::DimensionKind kind) const {
    for (size_t d = extents_.size(); d-- > 0;) {
      if (call_.dimensions[d].kind != kind) continue;
      if (++(*point)[d] < extents_[d]) return true;
      (*point)[d] = 0;
    }
    return false;
  }

  bool Empty(v1::DimensionKind kind) const {
    for (size_t d = 0; d < extents_.size(); ++d) {
      if (call_.dimensions[d].kind == kind && extents_[d] == 0) return true;
    }
    return false;
  }

  absl::Status RunMap() {
    absl::StatusOr<EntryRoutine<T>> routine = FindEntryRoutine<T>(call_.overload->routine);
    if (!routine.ok()) return routine.status();
    if (Empty(v1::PARALLEL)) return absl::OkStatus();
    std::vector<int64_t> point(extents_.size());
    do {
      for (int64_t entry = 0; entry < entries_; ++entry) {
        std::vector<T> arguments;
        for (size_t o = 0; o < host_.operands.size(); ++o)
          arguments.push_back(Entry(static_cast<int>(o), point, entry));
        result_[Offset(call_.result_map, point) * entries_ + entry] = (*routine)(arguments.data());
      }
    } while (Advance(&point, v1::PARALLEL));
    return absl::OkStatus();
  }

  absl::Status RunReduce() {
    switch (call_.overload->monoid) {
      case v1::SUM:
        return Reduce<fu_sum<T>>();
      case v1::MAX:
        return Reduce<fu_maximum<T>>();
      case v1::MIN:
        return Reduce<fu_minimum<T>>();
      default:
        return Reduce<fu_arg_max<T>>();
    }
  }

  template <class Monoid>
  absl::Status Reduce() {
    const Overload& overload = *call_.overload;
    absl::StatusOr<EntryRoutine<T>> term = FindEntryRoutine<T>(overload.term_routine);
    if (!term.ok()) return term.status();
    absl::StatusOr<EntryRoutine<T>> finish = EntryRoutine<T>([](const T* arguments) { return arguments[0]; });
    if (!overload.finish_routine.empty()) finish = FindEntryRoutine<T>(overload.finish_routine);
    if (!finish.ok()) return finish.status();
    if (Empty(v1::PARALLEL)) return absl::OkStatus();
    int64_t extent = 1;
    for (size_t d = 0; d < extents_.size(); ++d) {
      if (call_.dimensions[d].kind == v1::REDUCTION) extent *= extents_[d];
    }
    std::vector<int64_t> point(extents_.size());
    do {
      typename Monoid::Acc accumulated = Monoid::identity();
      for (int64_t index = 0; index < extent; ++index) {
        std::vector<T> arguments;
        for (int operand : overload.term_operands) arguments.push_back(Entry(operand, point, 0));
        accumulated = Monoid::combine(accumulated, Monoid::lift((*term)(arguments.data()), index));
        Advance(&point, v1::REDUCTION);
      }
      std::vector<T> arguments = {Monoid::value(accumulated), static_cast<T>(extent)};
      for (int operand : overload.finish_operands) arguments.push_back(Entry(operand, point, 0));
      result_[Offset(call_.result_map, point)] = (*finish)(arguments.data());
    } while (Advance(&point, v1::PARALLEL));
    return absl::OkStatus();
  }

  absl::Status RunElement() {
    const Implementation& implementation = call_.overload->implementations[host_.implementation];
    auto by_name = ElementRoutines().find(implementation.routine);
    if (by_name == ElementRoutines().end()) {
      return absl::NotFoundError(
          absl::StrCat("routine ", implementation.routine, " is not in element_routine_table.cc"));
    }
    auto instance = by_name->second.find(call_.static_parameters);
    if (instance == by_name->second.end()) {
      return absl::NotFoundError(absl::StrCat("routine ", implementation.routine, " has no instance <",
                                              absl::StrJoin(call_.static_parameters, ","), ">"));
    }
    int threads = ThreadsPerElement(implementation, call_.result.element_shape);
    for (int64_t element = 0; element < host_.elements; ++element) {
      std::vector<const T*> operands;
      for (size_t o = 0; o < host_.operands.size(); ++o) {
        int64_t first = host_.types[o].mapped ? element * host_.types[o].element_entries() : 0;
        operands.push_back(host_.operands[o].data() + first);
      }
      for (int thread = 0; thread < threads; ++thread) {
        T* result = result_.data() + element * entries_;
        if constexpr (std::is_same_v<T, float>) {
          instance->second.f32(thread, operands, result);
        } else {
          instance->second.f64(thread, operands, result);
        }
      }
    }
    return absl::OkStatus();
  }

  const HostCall<T>& host_;
  const ResolvedCall& call_;
  std::vector<int64_t> extents_;  // by dimension of the call
  int64_t entries_ = 1;           // of one element of the result
  std::vector<T> result_;
};

}  // namespace

template <class T>
absl::StatusOr<std::vector<T>> Interpret(const HostCall<T>& call) {
  return Interpreter<T>(call).Run();
}

template absl::StatusOr<std::vector<float>> Interpret(const HostCall<float>& call);
template absl::StatusOr<std::vector<double>> Interpret(const HostCall<double>& call);

}  // namespace fusion::testing
