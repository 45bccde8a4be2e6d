#!/usr/bin/env bash
# The long forms of the tests of faults, hours of them, and a table of what they showed.
#
#   deploy/dev/soak.sh [--quick] [--only TEXT] [--results DIR] [BUILD_FOLDER]
#     --quick         the short forms, to see that the script works
#     --only TEXT     of the rows whose names hold TEXT alone: several such soaks may run beside each other
#     --results DIR   logs and rows of the table are kept there; what has passed there before is not run again, so
#                     that a soak can be interrupted and go on another day. Each row says when, and of which commit
set -uo pipefail
readonly invoked_in=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1

quick=
only=
results=
while [[ ${1:-} == --* ]]; do
  case $1 in
    --quick) quick=1; shift ;;
    --only) only=${2:?--only needs a text}; shift 2 ;;
    --results) results=${2:?--results needs a folder}; shift 2 ;;
    *) sed -n '4,8s/^# \{0,1\}//p' deploy/dev/soak.sh >&2; exit 2 ;;
  esac
done
readonly build=${1:-build/release}
readonly example=examples/vadd.fuse
if [[ -z $quick ]]; then export FUSION_LONG_TESTS=1; fi
count() { if [[ -n $quick ]]; then echo "$1"; else echo "$2"; fi; }

[[ -z $results || $results == /* ]] || results=$invoked_in/$results
logs=${results:-$(mktemp -d "${TMPDIR:-/tmp}/fusion-soak-XXXXXX")}
mkdir -p "$logs"
commit=$(git rev-parse --short HEAD 2>/dev/null || echo unknown)
table=()
failed=0

# run NAME COMMAND...: keeps the output, takes its last lines that say something into the table.
run() {
  local name=$1 file log row start result
  shift
  file=${name//[ \/,]/_}${quick:+.quick}
  log=$logs/$file.log
  row=$logs/$file.row
  [[ $name == *"$only"* ]] || return 0
  if [[ -e $row ]]; then
    table+=("$(<"$row")")
    echo "before  $name"
    return
  fi
  start=$(date +%s)
  if "$@" >"$log" 2>&1; then result=pass; else result=FAIL; failed=1; fi
  table+=("| $name | $result | $(date -u +%Y-%m-%d) $commit | $(($(date +%s) - start)) s | $(grep -E 'seeds:|workers |server killed|faults,|kills,|restarts:|PASSED|tasks_per|wait |^links |SKIP' "$log" | tail -n 4 | tr '\n' ';' | tr -d '|') |")
  [[ $result != pass ]] || printf '%s\n' "${table[-1]}" >"$row"
  echo "$result    $name"
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
run "tuning, server killed" env FUSION_KILLS="$(count 10 100)" "$build/tests/fault_tuning_service_test"
run "tuning, programs" "$build/tests/fault_tuning_test"
run "upgrade" "$build/tests/fault_upgrade_test"
run "malformed" "$build/tests/fault_malformed_test"
run "HTTP/2 abuse" python3 tests/fault/http2_abuse.py "$build/bin"
run "HTTP/2 abuse, TLS" python3 tests/fault/http2_abuse.py "$build/bin" --tls
run "fuzzers" tests/fuzz/run.sh
run "throughput" "$build/tests/dispatch_bench" --workers "$(count 100 1000)" --tasks "$(count 5000 100000)"
run "soak" python3 tests/fault/processes.py "$build/bin" "$example" --soak "$(count 60 3600)"

printf '%s\n' "| test | result | day, commit | time | figures |" "| --- | --- | --- | --- | --- |" "${table[@]}"
echo "Logs: $logs"
exit $failed
