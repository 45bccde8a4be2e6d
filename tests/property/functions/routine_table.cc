#include "tests/property/functions/routine_table.h"

#include "library/device/fusion_device.h"

// Routines need fusion_device.h before them.
#include "library/functions/blas1/argmax/routines.h"
#include "library/functions/blas1/asum/routines.h"
#include "library/functions/blas1/axpby/routines.h"
#include "library/functions/blas1/axpy/routines.h"
#include "library/functions/blas1/dot/routines.h"
#include "library/functions/blas1/nrm2/routines.h"
#include "library/functions/blas1/scal/routines.h"
#include "library/functions/blas1/sum/routines.h"
#include "library/functions/blas1/vadd/routines.h"
#include "library/functions/blas1/vdiv/routines.h"
#include "library/functions/blas1/vmax/routines.h"
#include "library/functions/blas1/vmin/routines.h"
#include "library/functions/blas1/vmul/routines.h"
#include "library/functions/blas1/vsub/routines.h"
#include "library/functions/blas2/coladd/routines.h"
#include "library/functions/blas2/coldiv/routines.h"
#include "library/functions/blas2/colmul/routines.h"
#include "library/functions/blas2/colsub/routines.h"
#include "library/functions/blas2/gemtv/routines.h"
#include "library/functions/blas2/gemv/routines.h"
#include "library/functions/blas2/ger/routines.h"
#include "library/functions/blas2/rowadd/routines.h"
#include "library/functions/blas2/rowdiv/routines.h"
#include "library/functions/blas2/rowmul/routines.h"
#include "library/functions/blas2/rowsub/routines.h"
#include "library/functions/blas2/symv/routines.h"
#include "library/functions/elements/madd/routines.h"
#include "library/functions/elements/msub/routines.h"
#include "library/functions/entrywise/abs/routines.h"
#include "library/functions/entrywise/add/routines.h"
#include "library/functions/entrywise/clamp/routines.h"
#include "library/functions/entrywise/cos/routines.h"
#include "library/functions/entrywise/div/routines.h"
#include "library/functions/entrywise/eq/routines.h"
#include "library/functions/entrywise/erf/routines.h"
#include "library/functions/entrywise/exp/routines.h"
#include "library/functions/entrywise/fma/routines.h"
#include "library/functions/entrywise/ge/routines.h"
#include "library/functions/entrywise/gelu/routines.h"
#include "library/functions/entrywise/gt/routines.h"
#include "library/functions/entrywise/le/routines.h"
#include "library/functions/entrywise/log/routines.h"
#include "library/functions/entrywise/lt/routines.h"
#include "library/functions/entrywise/max/routines.h"
#include "library/functions/entrywise/min/routines.h"
#include "library/functions/entrywise/mul/routines.h"
#include "library/functions/entrywise/neg/routines.h"
#include "library/functions/entrywise/pow/routines.h"
#include "library/functions/entrywise/recip/routines.h"
#include "library/functions/entrywise/relu/routines.h"
#include "library/functions/entrywise/rsqrt/routines.h"
#include "library/functions/entrywise/scale/routines.h"
#include "library/functions/entrywise/shift/routines.h"
#include "library/functions/entrywise/sigmoid/routines.h"
#include "library/functions/entrywise/silu/routines.h"
#include "library/functions/entrywise/sin/routines.h"
#include "library/functions/entrywise/sqrt/routines.h"
#include "library/functions/entrywise/square/routines.h"
#include "library/functions/entrywise/sub/routines.h"
#include "library/functions/entrywise/tanh/routines.h"
#include "library/functions/entrywise/where/routines.h"
#include "library/functions/reduce/colmax/routines.h"
#include "library/functions/reduce/colmean/routines.h"
#include "library/functions/reduce/colmin/routines.h"
#include "library/functions/reduce/colnrm2/routines.h"
#include "library/functions/reduce/colsum/routines.h"
#include "library/functions/reduce/rowmax/routines.h"
#include "library/functions/reduce/rowmean/routines.h"
#include "library/functions/reduce/rowmin/routines.h"
#include "library/functions/reduce/rownrm2/routines.h"
#include "library/functions/reduce/rowsum/routines.h"

namespace fusion::testing {
namespace {

// Of a term of a sum its value, as it is added to nothing.
template <class T>
T ValueOf(T value) {
  return value;
}
template <class T>
T ValueOf(fu_product<T> term) {
  return fu_sum<T>::combine(fu_sum<T>::identity(), fu_sum<T>::lift(term, 0));
}

template <class T, class R, class... Arguments, size_t... I>
EntryRoutine<T> Callable(R (*routine)(Arguments...), std::index_sequence<I...>) {
  return [routine](const T* arguments) { return ValueOf(routine(arguments[I]...)); };
}

template <class R, class... F, class Q, class... D>
EntryRoutinePair Pair(R (*f32)(F...), Q (*f64)(D...)) {
  static_assert(sizeof...(F) == sizeof...(D));
  return {static_cast<int>(sizeof...(F)), Callable<float>(f32, std::index_sequence_for<F...>()),
          Callable<double>(f64, std::index_sequence_for<D...>())};
}

#define ROUTINE(name) \
  { #name, Pair(&name <float>, &name <double>) }

}  // namespace

const std::map<std::string, EntryRoutinePair>& EntryRoutines() {
  static const auto* routines = new std::map<std::string, EntryRoutinePair>{
      // entrywise
      ROUTINE(abs_map),
      ROUTINE(add_map),
      ROUTINE(clamp_map),
      ROUTINE(cos_map),
      ROUTINE(div_map),
      ROUTINE(eq_map),
      ROUTINE(erf_map),
      ROUTINE(exp_map),
      ROUTINE(fma_map),
      ROUTINE(ge_map),
      ROUTINE(gelu_map),
      ROUTINE(gt_map),
      ROUTINE(le_map),
      ROUTINE(log_map),
      ROUTINE(lt_map),
      ROUTINE(max_map),
      ROUTINE(min_map),
      ROUTINE(mul_map),
      ROUTINE(neg_map),
      ROUTINE(pow_map),
      ROUTINE(recip_map),
      ROUTINE(relu_map),
      ROUTINE(rsqrt_map),
      ROUTINE(scale_map),
      ROUTINE(shift_map),
      ROUTINE(sigmoid_map),
      ROUTINE(silu_map),
      ROUTINE(sin_map),
      ROUTINE(sqrt_map),
      ROUTINE(square_map),
      ROUTINE(sub_map),
      ROUTINE(tanh_map),
      ROUTINE(where_map),
      // blas1
      ROUTINE(argmax_term),
      ROUTINE(asum_term),
      ROUTINE(axpby_map),
      ROUTINE(axpy_map),
      ROUTINE(dot_term),
      ROUTINE(nrm2_term),
      ROUTINE(nrm2_finish),
      ROUTINE(scal_map),
      ROUTINE(sum_term),
      ROUTINE(vadd_map),
      ROUTINE(vdiv_map),
      ROUTINE(vmax_term),
      ROUTINE(vmin_term),
      ROUTINE(vmul_map),
      ROUTINE(vsub_map),
      // blas2
      ROUTINE(coladd_map),
      ROUTINE(coldiv_map),
      ROUTINE(colmul_map),
      ROUTINE(colsub_map),
      ROUTINE(gemtv_term),
      ROUTINE(gemtv_finish),
      ROUTINE(gemtv_finish_add),
      ROUTINE(gemtv_part_add),
      ROUTINE(gemv_term),
      ROUTINE(gemv_finish),
      ROUTINE(gemv_finish_add),
      ROUTINE(ger_map),
      ROUTINE(rowadd_map),
      ROUTINE(rowdiv_map),
      ROUTINE(rowmul_map),
      ROUTINE(rowsub_map),
      ROUTINE(symv_term),
      ROUTINE(symv_finish),
      ROUTINE(symv_finish_add),
      // reduce
      ROUTINE(colmax_term),
      ROUTINE(colmean_term),
      ROUTINE(colmean_finish),
      ROUTINE(colmin_term),
      ROUTINE(colnrm2_term),
      ROUTINE(colnrm2_finish),
      ROUTINE(colsum_term),
      ROUTINE(rowmax_term),
      ROUTINE(rowmean_term),
      ROUTINE(rowmean_finish),
      ROUTINE(rowmin_term),
      ROUTINE(rownrm2_term),
      ROUTINE(rownrm2_finish),
      ROUTINE(rowsum_term),
      // elements, which add and subtract whole matrices too
      ROUTINE(madd_map),
      ROUTINE(msub_map),
  };
  return *routines;
}

}  // namespace fusion::testing
