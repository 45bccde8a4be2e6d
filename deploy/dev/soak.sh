#!/usr/bin/env bash
# The long forms of the tests of faults, hours of them, and a table of what they showed.
#
#   deploy/dev/soak.sh [--quick] [BUILD_FOLDER]      --quick: the short forms, to see that the script works
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

quick=
if [[ ${1:-} == --quick ]]; then quick=1; shift; fi
readonly build=${1:-build/release}
readonly example=examples/vadd.fuse
if [[ -z $quick ]]; then export FUSION_LONG_TESTS=1; fi
count() { if [[ -n $quick ]]; then echo "$1"; else echo "$2"; fi; }

logs=$(mktemp -d "${TMPDIR:-/tmp}/fusion-soak-XXXXXX")
table=()
failed=0

# run NAME COMMAND...: keeps the output, takes its last line that says something into the table.
run() {
  local name=$1 log start result
  shift
  log=$logs/${name// /_}.log
  start=$(date +%s)
  if "$@" >"$log" 2>&1; then result=pass; else result=FAIL; failed=1; fi
  table+=("| $name | $result | $(($(date +%s) - start)) s | $(grep -E 'seeds:|workers |server killed|faults,|PASSED|tasks_per|wait |^links |SKIP' "$log" | tail -n 4 | tr '\n' ';' | tr -d '|') |")
  echo "$result  $name"
}

run "simulated farm" "$build/tests/fault_simulation_test"
run "workers killed" python3 tests/fault/processes.py "$build/bin" "$example" --kill-workers "$(count 10 500)" --workers 24 --parallel 10
run "workers stopped" python3 tests/fault/processes.py "$build/bin" "$example" --stop-workers "$(count 5 200)" --workers 24 --parallel 10
run "server killed" python3 tests/fault/processes.py "$build/bin" "$example" --kill-server "$(count 10 300)"
run "links between namespaces" python3 tests/fault/network_links.py "$build/bin" "$example" --each "$(count 4 200)"
run "server killed at commits" python3 tests/fault/commit_kills.py "$build/bin" "$example" "$build/tests/libfusion_kill_at_commit.so"
run "storage" "$build/tests/fault_storage_test"
run "candidates" "$build/tests/fault_candidates_test"
run "sandbox" "$build/tests/fault_sandbox_test"
run "identity" "$build/tests/fault_identity_test"
run "tuning, server killed" "$build/tests/fault_tuning_service_test"
run "upgrade" "$build/tests/fault_upgrade_test"
run "malformed" "$build/tests/fault_malformed_test"
run "HTTP/2 abuse" python3 tests/fault/http2_abuse.py "$build/bin"
run "throughput" "$build/tests/dispatch_bench" --tasks "$(count 5000 100000)"
run "soak" python3 tests/fault/processes.py "$build/bin" "$example" --soak "$(count 60 3600)"

printf '%s\n' "| test | result | time | figures |" "| --- | --- | --- | --- |" "${table[@]}"
echo "Logs: $logs"
exit $failed
