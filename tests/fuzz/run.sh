#!/bin/sh
# Builds the fuzz targets with clang, ASan and UBSan in build/fuzz, and runs each.
#
#   tests/fuzz/run.sh [SECONDS]    so long each (default 30); with FUSION_LONG_TESTS=1: a million inputs each, however long it takes
#                                  (50,000 of the two targets of which an input is many calls)
#
# A failure leaves the input in build/fuzz/found. What was learned stays in build/fuzz/corpus.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$root/build/fuzz
seconds=${1:-30}
cmake -S "$root" -B "$build" -G Ninja -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_BUILD_TYPE=Debug \
  -DCMAKE_CXX_FLAGS_DEBUG=-O1 -DFUSION_SANITIZE=fuzzer-no-link,address,undefined -DFUSION_BUILD_TESTS=ON -DFUSION_PRECOMPILE=OFF >/dev/null
cmake --build "$build" --target fuzz_targets
limit=-max_total_time=$seconds
[ "${FUSION_LONG_TESTS:-}" = 1 ] && limit=-runs=1000000
mkdir -p "$build/found"
status=0
# Undefined behaviour ends the program like everything else that is found. Stacks of allocations are recorded with every allocation.
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 ASAN_OPTIONS=malloc_context_size=4
for name in parse loops submit synchronize worker_sequences service_calls stored_rows tuner device_code runner_replies requests; do
  options=-max_len=16384 runs=$limit
  # A source reaches tens of thousands of features of the parser. Weighing inputs by them takes libFuzzer longer than running these, so
  # edges alone count here; what is wrong with a long source is wrong with a short one, as limits on lengths have tests of their own.
  edges_alone="-max_len=1024 -entropic=0 -use_counters=0"
  case $name in
    parse) seeds=$root/examples options=$edges_alone ;;
    loops) seeds=$root/examples/loops options="$edges_alone -timeout=60" ;;
    submit) seeds="$root/examples $root/tests/fuzz/corpus/submit" options=$edges_alone ;;
    tuner | device_code | requests) seeds=$root/tests/fuzz/corpus/$name options=-max_len=4096 ;;
    worker_sequences | service_calls)  # an input is up to 64 calls of a farm, or 8 of a server
      seeds=$root/tests/fuzz/corpus/$name options=-max_len=256
      [ "${FUSION_LONG_TESTS:-}" = 1 ] && runs=-runs=50000
      ;;
    *) seeds=$root/tests/fuzz/corpus/$name ;;
  esac
  mkdir -p "$build/corpus/$name"
  # shellcheck disable=SC2086
  if "$build/bin/fuzz_$name" "$runs" $options -timeout=20 -rss_limit_mb=4096 \
    -print_final_stats=1 -artifact_prefix="$build/found/$name-" "$build/corpus/$name" $seeds \
    >"$build/found/$name.log" 2>&1; then
    echo "figure: runs of $name = $(sed -n 's/^stat::number_of_executed_units: *//p' "$build/found/$name.log" | head -n 1)"
    echo "$name: $(grep -m1 number_of_executed "$build/found/$name.log" | tr -s ' ')"
  else
    echo "$name: FAILED, see $build/found/$name.log"
    tail -n 40 "$build/found/$name.log"
    status=1
  fi
done
exit $status
