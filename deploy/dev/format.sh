#!/usr/bin/env bash
# Formats the C++ sources as .clang-format says; those below a .clang-format of their own are left as they are where it says so.
#
#   deploy/dev/format.sh            formats them
#   deploy/dev/format.sh --check    changes nothing, and names what is not formatted
#
# Versions of clang-format differ: this is version 14, of Debian 12. Exit status: 0 all is formatted, 1 something is not (--check),
# 2 bad usage, 77 there is no clang-format of that version, or no git.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

version=14
mode=(-i)
case "${1:-}" in
  "") ;;
  --check) mode=(--dry-run -Werror) ;;
  -h | --help) sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 0 ;;
  *) echo "format.sh: unknown option $1" >&2; exit 2 ;;
esac
for program in "clang-format-$version" clang-format none; do
  if "$program" --version 2>/dev/null | grep -q "version $version\."; then break; fi
done
if [[ $program == none ]]; then
  echo "format.sh: there is no clang-format of version $version" >&2
  exit 77
fi
if ! git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
  echo "format.sh: this is no checkout of git, which knows what the sources are" >&2
  exit 77
fi
status=0
git ls-files -z '*.cc' '*.h' '*.cu' | xargs -0 -P "$(nproc)" -n 40 "$program" "${mode[@]}" || status=1
exit $status
