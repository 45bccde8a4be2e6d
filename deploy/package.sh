#!/usr/bin/env bash
# Makes a folder with the programs of build/release that runs, from wherever it is copied to, on any x86-64 Linux with
# glibc 2.36 or later: all shared libraries but glibc's own are beside the programs.
#
#   deploy/package.sh [--output DIR] [--allow-newer-glibc]
#     --output DIR           where to make it (default: build/package/fusion); an earlier package there is replaced
#     --allow-newer-glibc    accept programs that need a glibc newer than 2.36 (built on Debian 13 or Ubuntu 24.04)
#
# Contents: bin/ the programs, tests/ the GPU tests (ctest --test-dir tests) and benchmarks if they were built, tests/gpu/ checks of all kernels,
# tests/bench/ the comparison with cuBLAS, torch and JAX and other measurements, examples/, deploy/ units and the
# script that makes certificates, include/ and lib/libfusion_tuner.so for programs that tune themselves, lib/private/ the libraries;
# fusion-cc, fusion-c++, lib/fusion/, lib/libfusion_partition.so and its tuner if they were built (they need clang-19 where they are used).
# Exit status: 0 made and checked, 1 it cannot be made, is 60 MB or more or needs a newer glibc, 2 bad usage.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly build=build/release
# Called as fusion-server, fusion-client is that.
readonly programs=(fusion-client fusion-worker fusion-runner)
readonly tuning_library=$build/lib/libfusion_tuner.so
readonly size_limit_bytes=60000000
readonly oldest_glibc=2.36
readonly owner_file=PACKAGE.txt
# glibc's own libraries must come from the machine it runs on: they belong to its kernel interface and loader.
readonly glibc_libraries='^(ld-linux.*|lib(c|m|mvec|dl|rt|pthread|resolv|util|anl|nss_.*))\.so(\.|$)'

fail() {
  echo "package.sh: $1" >&2
  exit "${2:-1}"
}

output=build/package/fusion
allow_newer_glibc=false
while [[ $# -gt 0 ]]; do
  case "$1" in
    --output) [[ $# -ge 2 && -n $2 ]] || fail "--output needs a value" 2; output=$2; shift 2 ;;
    --allow-newer-glibc) allow_newer_glibc=true; shift ;;
    -h | --help) sed -n '2,13s/^# \{0,1\}//p' deploy/package.sh; exit 0 ;;
    *) fail "unknown option $1" 2 ;;
  esac
done
for tool in patchelf strip objdump ldd; do
  command -v "$tool" >/dev/null || fail "$tool is not installed: run deploy/install-deps.sh"
done
for program in "${programs[@]}"; do
  [[ -x $build/bin/$program ]] || fail "$build/bin/$program is missing: run deploy/quickstart.sh or tests/run.sh first"
done
if [[ -e $output && ! -e $output/$owner_file && -n $(ls -A "$output") ]]; then
  fail "$output is not empty and not a package of this program"
fi

[[ -f $tuning_library ]] || fail "$tuning_library is missing: run deploy/quickstart.sh or tests/run.sh first"

mkdir -p "$(dirname "$output")"
work=$(mktemp -d "$(dirname "$output")/.package-XXXXXX")
copy=$(mktemp -d)
trap 'rm -rf "$work" "$copy"' EXIT
# What others link with is alone in lib/: programs of a newer compiler must not find an older C++ library beside it.
mkdir -p "$work/bin" "$work/lib/private"

for program in "${programs[@]}"; do cp "$build/bin/$program" "$work/bin/"; done
shopt -s nullglob
for test in "$build"/tests/gpu_*_test "$build"/tests/bench_* "$build"/tests/polybench_tuned; do
  if [[ -f $test && -x $test ]]; then
    mkdir -p "$work/tests"
    cp "$test" "$work/tests/"
  fi
done
cp -R examples "$work/"
# In the folder that the sources of the examples name.
mkdir -p "$work/include/client/tuner"
cp client/tuner/fusion_tuner.h client/tuner/fusion_tuner.hpp "$work/include/client/tuner/"
cp "$tuning_library" "$work/lib/"
# The compiler of partitioned programs: its plugin takes LLVM from the compiler that loads it, its run time needs C and C++ alone.
readonly plugin=$build/lib/fusion/fusion_partition.so
if [[ -f $plugin ]]; then
  cp "$build/bin/fusion-cc" "$build/bin/fusion-c++" "$work/bin/"
  mkdir -p "$work/lib/fusion"
  cp "$plugin" "$work/lib/fusion/"
  # The second is the tuner of such programs, which finds libfusion_tuner.so beside itself.
  cp "$build/lib/libfusion_partition.so" "$build/lib/libfusion_partition_tuner.so" "$work/lib/"
  strip --strip-unneeded "$work/lib/fusion/"* "$work"/lib/libfusion_partition*.so
fi
mkdir -p "$work/deploy"
cp -R deploy/systemd deploy/make-certificates.sh "$work/deploy/"
mapfile -t binaries < <(find "$work/bin" -type f ! -name 'fusion-c[c+]*')
if [[ -d $work/tests ]]; then binaries+=("$work"/tests/*); fi
# The comparison and the checks: scripts, and the cuBLAS sequences where they were built. No test of them is needed there.
mkdir -p "$work/tests/bench/peers" "$work/tests/bench/tuning" "$work/tests/gpu"
for script in tests/bench/peers/*.py tests/bench/tuning/*.py tests/bench/model_accuracy.py tests/bench/examples_bench.py tests/bench/farm_bench.py tests/bench/local_farm.py tests/bench/README.md tests/gpu/*.py; do
  if [[ $script != *_test.py ]]; then cp "$script" "$work/${script%/*}/"; fi
done
readonly cublas_sequences=$build/tests/bench/peers/libfusion_cublas_sequences.so
if [[ -f $cublas_sequences ]]; then
  cp "$cublas_sequences" "$work/tests/bench/peers/"
  binaries+=("$work/tests/bench/peers/${cublas_sequences##*/}")
else
  echo "No cuBLAS in tests/bench/peers: $cublas_sequences was not built (no CUDA headers)."
fi

# "name path" of every library that a file needs, directly or through another.
needed_libraries() {
  ldd "$1" | awk '$2 == "=>" && $3 != "" {print $1, ($3 == "not" ? "" : $3)}'
}

for binary in "${binaries[@]}" "$work/lib/${tuning_library##*/}"; do
  while read -r name path; do
    if [[ $name =~ $glibc_libraries || -e $work/lib/private/$name || -e $work/lib/$name ]]; then continue; fi
    [[ -n $path ]] || fail "$(basename "$binary") needs $name, which this machine does not have"
    cp --dereference "$path" "$work/lib/private/$name"
  done < <(needed_libraries "$binary")
done
libraries=("$work/lib/${tuning_library##*/}" "$work"/lib/private/*)
chmod u+w,a+r "${libraries[@]}"
strip --strip-unneeded "${libraries[@]}" "${binaries[@]}"
# DT_RPATH, which LD_LIBRARY_PATH does not override: a cluster's environment modules must not replace libraries.
# shellcheck disable=SC2016
{
  patchelf --force-rpath --set-rpath '$ORIGIN/../lib/private:$ORIGIN/../lib' "${binaries[@]}"
  patchelf --force-rpath --set-rpath '$ORIGIN' "$work"/lib/private/*
  patchelf --force-rpath --set-rpath '$ORIGIN/private' "${libraries[0]}"
}

# The GPU tests for ctest, as the build has them: ctest --test-dir tests --label-regex gpu. All but the mutants, whose program is too large.
if [[ -f $build/CTestTestfile.cmake && -n $(compgen -G "$work/tests/gpu_*_test") ]]; then
  ctest --test-dir "$build" --show-only=json-v1 --label-regex '^gpu$' --exclude-regex '^gpu/mutation/' |
    python3 deploy/package_tests.py "$work/tests" >"$work/tests/CTestTestfile.cmake" ||
    fail "the list of GPU tests cannot be made"
fi

version=$(sed -n 's/^project(fusion VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
commit=$(git describe --always --dirty 2>/dev/null || echo "unknown")
cat >"$work/$owner_file" <<TEXT
fusion $version, commit $commit, built on $(. /etc/os-release && echo "$PRETTY_NAME"), $(uname -m)

Start here: bin/fusion-client submit examples/function1.fuse
Copy the folder anywhere. It needs glibc $oldest_glibc or later; for --target host also a C++ compiler with OpenMP,
and for --target cuda the NVIDIA driver and NVRTC (libnvrtc.so, part of the CUDA Toolkit).
Comparison with cuBLAS, torch and JAX: python3 tests/bench/peers/peers_bench.py --output peers.json --plot peers.svg
Tests of what needs a GPU: ctest --test-dir tests --label-regex gpu --output-on-failure
Throughput of a farm of this machine: python3 tests/bench/farm_bench.py --target cuda --output farm.json
TEXT

ln -s fusion-client "$work/bin/fusion-server"

# Which glibc is asked for, and by which file.
newest=0
for file in "${binaries[@]}" "${libraries[@]}"; do
  asked=$(objdump -T "$file" | grep -o 'GLIBC_[0-9][0-9.]*' | sed 's/GLIBC_//' | sort -uV | tail -n 1 || true)
  if [[ -n $asked && $(printf '%s\n' "$newest" "$asked" | sort -V | tail -n 1) != "$newest" ]]; then
    newest=$asked
    newest_file=${file#"$work"/}
  fi
done
if [[ $(printf '%s\n' "$oldest_glibc" "$newest" | sort -V | tail -n 1) != "$oldest_glibc" ]]; then
  if $allow_newer_glibc; then
    echo "Needs glibc $newest ($newest_file), so it does not run on machines with glibc $oldest_glibc."
    sed -i "s/It needs glibc $oldest_glibc/It needs glibc $newest/" "$work/$owner_file"
  else
    fail "$newest_file needs glibc $newest: build on Debian 12 (glibc $oldest_glibc), or give --allow-newer-glibc"
  fi
fi

# The check that it is relocatable: a copy elsewhere, without any environment, takes all libraries from itself or glibc.
cp -R "$work/." "$copy/"
for binary in "${binaries[@]}" "$work/lib/${tuning_library##*/}"; do
  binary=$copy/${binary#"$work"/}
  while read -r name path; do
    if [[ $name =~ $glibc_libraries ]]; then continue; fi
    [[ $(realpath -m "${path:-/}") == "$(realpath "$copy")"/lib/* ]] ||
      fail "$(basename "$binary") takes $name from ${path:-nowhere} and not from the package"
  done < <(env -i PATH=/usr/bin:/bin bash -c "$(declare -f needed_libraries); needed_libraries \"\$1\"" - "$binary")
done
for program in fusion-client fusion-server fusion-worker; do
  env -i "$copy/bin/$program" --help </dev/null >/dev/null || fail "$program does not start from the package"
done

size=$(find "$work" -type f -printf '%s\n' | awk '{sum += $1} END {print sum + 0}')
echo "Sizes in MB:"
(cd "$work" && du --apparent-size --block-size=1 -s -- * | sort -rn) |
  awk '{printf "  %7.2f  %s\n", $1 / 1e6, $2}'
echo "Largest libraries in MB:"
find "$work/lib" -type f -printf '%s %P\n' | sort -rn | head -n 8 | awk '{printf "  %7.2f  lib/%s\n", $1 / 1e6, $2}'
awk -v size="$size" -v limit="$size_limit_bytes" \
  'BEGIN {printf "Total: %.2f MB (limit %.0f MB)\n", size / 1e6, limit / 1e6}'
((size < size_limit_bytes)) || fail "the package is too large"

chmod 755 "$work"
rm -rf "$output"
mv "$work" "$output"
echo "Made $output: glibc $newest or later."
