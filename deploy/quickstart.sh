#!/usr/bin/env bash
# From a fresh checkout to the ranked table of a first computation: installs what is missing, builds the programs into
# build/release/bin and the library of programs that tune themselves into build/release/lib, then fuses Function I on this
# machine's CPU. Running it again is incremental and fast.
#
#   deploy/quickstart.sh [OPTIONS OF fusion-client submit...]     e.g. deploy/quickstart.sh --candidates 10
#
# Exit status: that of the step that failed, else 0.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. deploy/steps.sh

if [[ ${1:-} == -h || ${1:-} == --help ]]; then
  sed -n '2,8s/^# \{0,1\}//p' deploy/quickstart.sh
  exit 0
fi

# The tests are not needed here; a build folder that has them keeps them.
configure_programs() {
  local tests=()
  if ! grep -qs '^FUSION_BUILD_TESTS:' build/release/CMakeCache.txt; then tests=(-DFUSION_BUILD_TESTS=OFF); fi
  configure release "${tests[@]}"
}

step_count=4
step "Install what is missing" deploy/install-deps.sh
step "Configure build/release" configure_programs
step "Build the programs" build release fusion-client fusion-server fusion-worker fusion-runner fusion_tuner_shared
step "Fuse examples/function1.fuse on the CPU" \
  build/release/bin/fusion-client submit examples/function1.fuse --target host "$@"
echo "Finished in $SECONDS s. The programs are in build/release/bin; try: build/release/bin/fusion-client --help"
