#!/usr/bin/env bash
# Installs what is missing, builds everything and runs the tests (all labels but bench, which measures and does not
# test). The last line is "N passed, N failed, N skipped"; tests that cannot run on this machine are skipped and
# listed.
#
#   tests/run.sh [--quick | --label L] [--preset P]
#     --quick      what to run before each commit: unit and golden tests but those that build and measure programs; under 3
#                  minutes on 2 cores once built
#     --label L    only tests with this label: unit, property, golden, integration, fault, gpu
#     --preset P   a configure preset: release (default), dev, asan, tsan
#
# Exit status: 0 all passed or skipped, 1 a test or a step failed, 2 bad usage. Reads nothing from stdin.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. deploy/steps.sh

usage() {
  sed -n '2,12s/^# \{0,1\}//p' tests/run.sh
}

preset=release
label=
excluded=
while [[ $# -gt 0 ]]; do
  case "$1" in
    --label | --preset)
      if [[ $# -lt 2 ]]; then echo "run.sh: $1 needs a value" >&2; exit 2; fi
      if [[ $1 == --label ]]; then label=$2; else preset=$2; fi
      shift 2
      ;;
    --quick) label='(unit|golden)'; excluded='^unit/measure/(Host/|VerificationTest)'; shift ;;
    -h | --help) usage; exit 0 ;;
    *) echo "run.sh: unknown option $1" >&2; usage >&2; exit 2 ;;
  esac
done
case "$preset" in
  release | dev | asan | tsan) ;;
  *) echo "run.sh: no preset $preset; there are release, dev, asan and tsan" >&2; exit 2 ;;
esac
case "$label" in
  "" | "(unit|golden)" | unit | property | golden | integration | fault | gpu) ;;
  *) echo "run.sh: no label $label; there are unit, property, golden, integration, fault and gpu" >&2; exit 2 ;;
esac

results=$PWD/build/$preset/test-results.xml

# A failing test is not a failing step: the last lines decide.
ctest_status=0
run_tests() {
  local selection=(--label-exclude '^bench$')
  if [[ -n $label ]]; then selection+=(--label-regex "^$label\$"); fi
  if [[ -n $excluded ]]; then selection+=(--exclude-regex "$excluded"); fi
  rm -f "$results"
  ctest --test-dir "build/$preset" "${selection[@]}" -j2 --output-on-failure --no-tests=error \
    --output-junit "$results" </dev/null || ctest_status=$?
  if [[ ! -s $results ]]; then
    echo "run.sh: ctest wrote no results" >&2
    return 1
  fi
}

step_count=4
step "Install what is missing" deploy/install-deps.sh --tests
step "Configure build/$preset with tests" configure "$preset" -DFUSION_BUILD_TESTS=ON
step "Build" build "$preset"
step "Run the tests${label:+ labelled $label}" run_tests
count_status=0
counts=$(python3 tests/count_results.py "$results") || count_status=$?
if [[ $ctest_status -ne 0 && $count_status -eq 0 ]]; then
  echo "run.sh: ctest failed with status $ctest_status though no test did; its messages are above" >&2
  count_status=1
fi
echo "$counts"
exit "$count_status"
