#include <type_traits>

#include "library/device/fusion_device.h"
#include "tests/property/functions/routine_table.h"

// Routines need fusion_device.h before them.
#include "library/functions/elements/madd/routines.h"
#include "library/functions/elements/maddi/routines.h"
#include "library/functions/elements/mdet/routines.h"
#include "library/functions/elements/minv/routines.h"
#include "library/functions/elements/mmul/routines.h"
#include "library/functions/elements/mmult/routines.h"
#include "library/functions/elements/msub/routines.h"
#include "library/functions/elements/mtmul/routines.h"
#include "library/functions/elements/mtrace/routines.h"
#include "library/functions/elements/mtrans/routines.h"
#include "library/functions/elements/mtvmul/routines.h"
#include "library/functions/elements/mvmul/routines.h"
#include "library/functions/elements/smmul/routines.h"
#include "library/functions/elements/svemul/routines.h"
#include "library/functions/elements/veadd/routines.h"
#include "library/functions/elements/vecross/routines.h"
#include "library/functions/elements/vedot/routines.h"
#include "library/functions/elements/venorm/routines.h"
#include "library/functions/elements/veouter/routines.h"
#include "library/functions/elements/vesub/routines.h"

namespace fusion::testing {
namespace {

using Table = std::map<std::string, std::map<StaticParameters, ElementRoutinePair>>;

// The argument of type A at position `operand` (positions count operands alone).
template <class A, class T>
A Argument(int thread, const std::vector<const T*>& operands, T* result, int operand) {
  if constexpr (std::is_same_v<A, int>) {
    return thread;
  } else if constexpr (std::is_same_v<A, T*>) {
    return result;
  } else if constexpr (std::is_same_v<A, const T*>) {
    return operands[operand];
  } else {
    static_assert(std::is_same_v<A, T>);
    return *operands[operand];
  }
}

template <class T, class First, class... Rest, size_t... I>
ElementRoutine<T> Callable(void (*routine)(First, Rest...), std::index_sequence<I...>) {
  constexpr int kThreads = std::is_same_v<First, int> ? 1 : 0;
  return [routine](int thread, const std::vector<const T*>& operands, T* result) {
    routine(Argument<First, T>(thread, operands, result, 0),
            Argument<Rest, T>(thread, operands, result, static_cast<int>(I) + 1 - kThreads)...);
  };
}

template <class First, class... Rest, class FirstD, class... RestD>
ElementRoutinePair Pair(void (*f32)(First, Rest...), void (*f64)(FirstD, RestD...)) {
  return {Callable<float>(f32, std::index_sequence_for<Rest...>()),
          Callable<double>(f64, std::index_sequence_for<RestD...>())};
}

#define ADD(name, ...) \
  (*all)[#name][{__VA_ARGS__}] = Pair(&name<float, __VA_ARGS__>, &name<double, __VA_ARGS__>)
#define ADD_PLAIN(name) (*all)[#name][{}] = Pair(&name<float>, &name<double>)

#define INSTANCES_OF_ONE(name) \
  ADD(name, 1);                \
  ADD(name, 2);                \
  ADD(name, 3);                \
  ADD(name, 5);                \
  ADD(name, 8);                \
  ADD(name, 17);               \
  ADD(name, 32)
#define INSTANCES_OF_TWO(name) \
  ADD(name, 1, 1);             \
  ADD(name, 2, 2);             \
  ADD(name, 3, 3);             \
  ADD(name, 5, 5);             \
  ADD(name, 1, 7);             \
  ADD(name, 7, 1);             \
  ADD(name, 4, 6);             \
  ADD(name, 32, 3)
#define INSTANCES_OF_THREE(name) \
  ADD(name, 1, 1, 1);            \
  ADD(name, 2, 2, 2);            \
  ADD(name, 3, 3, 3);            \
  ADD(name, 5, 5, 5);            \
  ADD(name, 1, 6, 1);            \
  ADD(name, 6, 1, 6);            \
  ADD(name, 2, 3, 4);            \
  ADD(name, 4, 32, 2);           \
  ADD(name, 8, 4, 12);           \
  ADD(name, 20, 15, 17)

Table* MakeTable() {
  auto* all = new Table;
  INSTANCES_OF_THREE(mmul_thread);
  INSTANCES_OF_THREE(mmul_entry);
  INSTANCES_OF_THREE(mmul_row);
  INSTANCES_OF_THREE(mmul_tile);
  INSTANCES_OF_THREE(mmul_quad);
  INSTANCES_OF_THREE(mmul_warp);
  INSTANCES_OF_THREE(mtmul_thread);
  INSTANCES_OF_THREE(mtmul_entry);
  INSTANCES_OF_THREE(mtmul_row);
  INSTANCES_OF_THREE(mmult_thread);
  INSTANCES_OF_THREE(mmult_entry);
  INSTANCES_OF_THREE(mmult_row);
  INSTANCES_OF_TWO(madd_thread);
  INSTANCES_OF_TWO(madd_entry);
  INSTANCES_OF_TWO(madd_row);
  INSTANCES_OF_TWO(msub_thread);
  INSTANCES_OF_TWO(msub_entry);
  INSTANCES_OF_TWO(msub_row);
  INSTANCES_OF_TWO(smmul_thread);
  INSTANCES_OF_TWO(smmul_entry);
  INSTANCES_OF_TWO(smmul_row);
  INSTANCES_OF_TWO(mtrans_thread);
  INSTANCES_OF_TWO(mtrans_entry);
  INSTANCES_OF_TWO(mtrans_row);
  INSTANCES_OF_TWO(veouter_thread);
  INSTANCES_OF_TWO(veouter_entry);
  INSTANCES_OF_TWO(veouter_row);
  INSTANCES_OF_TWO(mvmul_thread);
  INSTANCES_OF_TWO(mvmul_entry);
  INSTANCES_OF_TWO(mtvmul_thread);
  INSTANCES_OF_TWO(mtvmul_entry);
  INSTANCES_OF_ONE(veadd_thread);
  INSTANCES_OF_ONE(veadd_entry);
  INSTANCES_OF_ONE(vesub_thread);
  INSTANCES_OF_ONE(vesub_entry);
  INSTANCES_OF_ONE(svemul_thread);
  INSTANCES_OF_ONE(svemul_entry);
  INSTANCES_OF_ONE(maddi_thread);
  INSTANCES_OF_ONE(maddi_entry);
  INSTANCES_OF_ONE(maddi_row);
  INSTANCES_OF_ONE(vedot_thread);
  INSTANCES_OF_ONE(venorm_thread);
  INSTANCES_OF_ONE(mtrace_thread);
  ADD_PLAIN(vecross_thread);
  ADD_PLAIN(vecross_entry);
  ADD(minv_thread, 2);
  ADD(minv_thread, 3);
  ADD(minv_thread, 4);
  ADD(minv_entry, 2);
  ADD(minv_entry, 3);
  ADD(minv_entry, 4);
  ADD(minv_row, 2);
  ADD(minv_row, 3);
  ADD(minv_row, 4);
  ADD(mdet_thread, 1);
  ADD(mdet_thread, 2);
  ADD(mdet_thread, 3);
  ADD(mdet_thread, 4);
  ADD(mdet_thread, 5);
  ADD(mdet_thread, 6);
  ADD(mdet_thread, 7);
  ADD(mdet_thread, 8);
  return all;
}

}  // namespace

const Table& ElementRoutines() {
  static const Table* all = MakeTable();
  return *all;
}

}  // namespace fusion::testing
