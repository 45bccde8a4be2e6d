# shellcheck shell=bash disable=SC2154
# Sourced by deploy/quickstart.sh and tests/run.sh: numbered steps that say how long they took, and the two steps
# that both share, configuring and building a preset. The caller sets step_count and stands in the repository root.

step_number=0

# step TITLE COMMAND...: runs the command as the next step; its failure ends the caller.
step() {
  local title=$1 begin=$SECONDS
  shift
  step_number=$((step_number + 1))
  printf '[%d/%d] %s\n' "$step_number" "$step_count" "$title"
  if ! "$@"; then
    printf '[%d/%d] FAILED after %d s: %s\n' "$step_number" "$step_count" $((SECONDS - begin)) "$title" >&2
    return 1
  fi
  printf '[%d/%d] done in %d s\n' "$step_number" "$step_count" $((SECONDS - begin))
}

# One compiler per core, fewer when memory is short: the largest files take about 1 GiB.
compiler_jobs() {
  local cores memory_kib jobs
  cores=$(nproc)
  memory_kib=$(awk '/^MemAvailable:/ {print $2}' /proc/meminfo 2>/dev/null || true)
  jobs=$((${memory_kib:-4194304} / 1048576))
  if ((jobs > cores)); then jobs=$cores; fi
  if ((jobs < 1)); then jobs=1; fi
  echo "$jobs"
}

# configure PRESET CMAKE-OPTIONS...: quiet unless it fails, but for the line about the CUDA Toolkit.
configure() {
  local preset=$1 log
  shift
  log=$(mktemp)
  if ! cmake --preset "$preset" "$@" >"$log" 2>&1; then
    cat "$log" >&2
    rm -f "$log"
    return 1
  fi
  sed -n 's/^-- \(CUDA Toolkit\)/\1/p' "$log"
  rm -f "$log"
}

# build PRESET [TARGET...]: on a terminal with ninja's one progress line, elsewhere only warnings and errors.
build() {
  local preset=$1 targets=() quiet=()
  shift
  if [[ $# -gt 0 ]]; then targets=(--target "$@"); fi
  if [[ ! -t 1 ]]; then quiet=(-- --quiet); fi
  cmake --build --preset "$preset" --parallel "$(compiler_jobs)" "${targets[@]}" "${quiet[@]}"
}
