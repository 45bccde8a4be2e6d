#!/usr/bin/env bash
# Installs what building fusion needs, from the packages of Debian 12, Debian 13 or Ubuntu 24.04, and says what it
# installs and what is there already. Works as root and through sudo. When nothing is missing it changes nothing,
# reaches no network and returns at once. It reaches nothing but the distribution's package archive.
#
#   deploy/install-deps.sh              install what is missing
#   deploy/install-deps.sh --partition  and what fusion-cc needs (clang-19 and its headers, about 500 MB)
#   deploy/install-deps.sh --tests      and what only tests/run.sh needs: HAProxy, shells, what fusion-cc needs
#   deploy/install-deps.sh --check      only say what is missing; exit 1 if anything is
#   deploy/install-deps.sh --list       print the package names, one a line
#
# Exit status: 0 everything is there, 1 something is missing or could not be installed, 2 bad usage.
set -euo pipefail

compiler_packages=(build-essential g++ cmake ninja-build ccache pkg-config git ca-certificates python3 patchelf)
service_packages=(bubblewrap libgrpc++-dev libgrpc-dev protobuf-compiler protobuf-compiler-grpc libprotobuf-dev libprotoc-dev
  libabsl-dev libre2-dev libc-ares-dev libssl-dev openssl zlib1g-dev libboost-dev libspdlog-dev libcli11-dev
  nlohmann-json3-dev libsqlite3-dev)
solver_packages=(liblpsolve55-dev lp-solve libsuitesparse-dev)
test_packages=(libgtest-dev libgmock-dev libbenchmark-dev libeigen3-dev)
# The version that deploy/dev/format.sh keeps to; other distributions may not have it, and do without.
if grep -qs '^VERSION_CODENAME=bookworm' /etc/os-release; then test_packages+=(clang-format-14); fi
partition_packages=(clang-19 llvm-19-dev libpolly-19-dev)
packages=("${compiler_packages[@]}" "${service_packages[@]}" "${solver_packages[@]}" "${test_packages[@]}")

usage() {
  sed -n '2,12s/^# \{0,1\}//p' "$0"
}

mode=install
case "${1:-}" in
  "") ;;
  --partition) packages+=("${partition_packages[@]}") ;;
  --tests) packages+=(haproxy fish zsh "${partition_packages[@]}") ;;
  --check) mode=check ;;
  --list) printf '%s\n' "${packages[@]}"; exit 0 ;;
  -h | --help) usage; exit 0 ;;
  *) echo "install-deps.sh: unknown option $1" >&2; usage >&2; exit 2 ;;
esac

# The version and root of the CUDA Toolkit as "12.4 /usr/local/cuda", or nothing.
find_cuda_toolkit() {
  local nvcc
  for nvcc in "${CUDA_HOME:+$CUDA_HOME/bin/nvcc}" "$(command -v nvcc || true)" /usr/local/cuda/bin/nvcc \
    /usr/local/cuda-*/bin/nvcc; do
    if [[ -n $nvcc && -x $nvcc ]]; then
      echo "$("$nvcc" --version | sed -n 's/^.*release \([0-9.]*\),.*$/\1/p') $(dirname "$(dirname "$nvcc")")"
      return
    fi
  done
}

report_cuda() {
  local found
  found=$(find_cuda_toolkit)
  if [[ -n $found ]]; then
    echo "CUDA Toolkit: version ${found%% *} in ${found#* }."
  else
    echo "CUDA Toolkit: not found. It is optional: everything builds, and computations are fused, built and timed on" \
      "the CPU. Without it this machine cannot build kernels for NVIDIA GPUs (--target cuda)."
  fi
}

distribution_name=unknown
distribution=unknown
if [[ -r /etc/os-release ]]; then
  distribution=$(. /etc/os-release && echo "${ID:-unknown}-${VERSION_ID:-unknown}")
  distribution_name=$(. /etc/os-release && echo "${PRETTY_NAME:-$distribution}")
fi
case "$distribution" in
  debian-12 | debian-13 | ubuntu-24.04) ;;
  *)
    cat >&2 <<MESSAGE
install-deps.sh: $distribution_name is not supported: Debian 12, Debian 13 and Ubuntu 24.04 are.
On another distribution install these by hand, then run cmake --preset release:
  a C++20 compiler (GCC 12 or later), CMake 3.25, Ninja, pkg-config, git, Python 3.9; ccache and patchelf if wanted
  gRPC 1.51 with grpc_cpp_plugin, Protocol Buffers 3.21 with protoc, Abseil 20220623, c-ares, RE2, OpenSSL, zlib
  Boost 1.74, spdlog, CLI11, nlohmann-json 3, SQLite 3.40, lp_solve 5.5, SuiteSparse (COLAMD)
  for the tests: GoogleTest and GoogleMock 1.12, Google Benchmark, Eigen 3.4
The names of these packages on Debian: deploy/install-deps.sh --list
MESSAGE
    exit 1
    ;;
esac

declare -A is_installed=()
while read -r name status; do
  if [[ $status == installed ]]; then is_installed[$name]=1; fi
done < <(dpkg-query --show --showformat='${Package} ${db:Status-Status}\n' "${packages[@]}" 2>/dev/null || true)

present=()
missing=()
for package in "${packages[@]}"; do
  if [[ -n ${is_installed[$package]:-} ]]; then present+=("$package"); else missing+=("$package"); fi
done

if [[ ${#missing[@]} -eq 0 ]]; then
  echo "$distribution_name: all ${#packages[@]} packages are installed."
  report_cuda
  exit 0
fi

echo "$distribution_name: ${#present[@]} of the ${#packages[@]} packages are installed."
if [[ ${#present[@]} -gt 0 ]]; then echo "Already there: ${present[*]}"; fi
if [[ $mode == check ]]; then
  echo "Missing: ${missing[*]}"
  report_cuda
  exit 1
fi
echo "Installing: ${missing[*]} (and what they depend on)"

as_root=()
if [[ $(id -u) -ne 0 ]]; then
  if ! command -v sudo >/dev/null; then
    echo "install-deps.sh: not root, and sudo is not there. Run as root: apt-get install ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi

# Prints a command's output only when it fails.
quietly() {
  local log
  log=$(mktemp)
  if ! "$@" >"$log" 2>&1; then
    cat "$log" >&2
    rm -f "$log"
    echo "install-deps.sh: this failed: $*" >&2
    return 1
  fi
  rm -f "$log"
}

apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3)
quietly "${apt[@]}" update
quietly "${apt[@]}" install --yes --no-install-recommends "${missing[@]}"
echo "Installed."
report_cuda
