#!/usr/bin/env bash
# Shows that a fresh machine is enough: makes a minimal Debian root with debootstrap, without compiler, CUDA or
# libraries, copies this checkout into it (tracked files and uncommitted ones, nothing that git ignores) and runs, as
# root in it, deploy/quickstart.sh and tests/run.sh, each twice. Prints how long each took.
#
#   deploy/dev/fresh_machine.sh [bookworm|trixie] [--keep] [--mirror URL] [-- COMMAND]
#     --keep         leave the root there at the end and say how to enter it
#     --mirror URL   the Debian archive to install from (default: that of this machine's apt, else debootstrap's own)
#     -- COMMAND     run this shell command in the checkout instead of the two scripts
#
# Needs root, debootstrap and unshare. The bare root is kept as a tarball below ${XDG_CACHE_HOME:-~/.cache}, so that
# only the first run downloads it; delete it to start from newer packages. Everything is mounted in a mount namespace
# of its own and runs in a process namespace of its own: both vanish with this script, however it ends.
#
# Exit status: 0 all runs succeeded, 1 one failed, 2 bad usage, 130 interrupted.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

usage() {
  sed -n '2,17s/^# \{0,1\}//p' deploy/dev/fresh_machine.sh
}

fail() {
  echo "fresh_machine.sh: $1" >&2
  exit "${2:-1}"
}

suite=bookworm
keep=false
mirror=
command=
while [[ $# -gt 0 ]]; do
  case "$1" in
    bookworm | trixie) suite=$1; shift ;;
    --keep) keep=true; shift ;;
    --mirror) [[ $# -ge 2 ]] || fail "--mirror needs a value" 2; mirror=$2; shift 2 ;;
    --) shift; command=$*; [[ -n $command ]] || fail "no command after --" 2; break ;;
    -h | --help) usage; exit 0 ;;
    *) echo "fresh_machine.sh: unknown argument $1" >&2; usage >&2; exit 2 ;;
  esac
done
[[ $(id -u) -eq 0 ]] || fail "must run as root: it makes a root file system and changes into it"
for program in debootstrap unshare setpriv chroot git tar; do
  [[ -n $(PATH=$PATH:/usr/sbin:/sbin type -P "$program") ]] || fail "$program is not installed"
done

if [[ -z $mirror ]] && grep -qs '^ID=debian' /etc/os-release; then
  # The first Debian archive in this machine's apt sources, without those of security updates.
  mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 'Origin: Debian' 2>/dev/null |
    grep -v security | head -n 1 || true)
fi

root=
running=
cleanup() {
  trap '' INT TERM
  # The first process of the namespace dies with unshare, and all others with that one.
  if [[ -n $running ]]; then kill -KILL "$running" 2>/dev/null || true; wait "$running" 2>/dev/null || true; fi
  if [[ -z $root ]]; then return; fi
  if $keep && [[ -d $root/etc ]]; then
    echo "The root is in $root. Enter it: unshare --mount --pid --fork chroot $root bash. Delete it when done."
  else
    rm -rf --one-file-system "$root"
  fi
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# Runs a command in the background and waits, so that a signal is handled at once and not after the command. The
# command is killed when this script is.
attended() {
  local status=0
  setpriv --pdeathsig KILL "$@" </dev/null &
  running=$!
  wait "$running" || status=$?
  running=
  return "$status"
}

root=$(mktemp -d "${TMPDIR:-/tmp}/fusion-fresh-$suite-XXXXXX")
chmod 755 "$root"

cache=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/fusion-fresh-machine
base=$cache/$suite.tar
if [[ ! -s $base ]]; then
  echo "Making a minimal Debian $suite root${mirror:+ from $mirror}"
  mkdir -p "$cache"
  options=(--variant=minbase)
  if [[ $mirror == https:* ]]; then options+=(--include=ca-certificates); fi
  log=$root.log
  if ! PATH=/usr/sbin:/sbin:$PATH attended unshare --mount --pid --fork --kill-child \
    debootstrap "${options[@]}" "$suite" "$root" ${mirror:+"$mirror"} >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    rm -f "$log"
    fail "debootstrap failed"
  fi
  rm -f "$log"
  tar --create --one-file-system --directory "$root" --exclude='./proc/*' --exclude='./var/cache/apt/archives/*.deb' \
    --file "$base.$$" .
  mv "$base.$$" "$base"
else
  attended tar --extract --directory "$root" --file "$base"
fi

# What apt needs to reach the archive from inside: host names, proxies, how strictly dates are checked.
cp --dereference /etc/resolv.conf /etc/hosts "$root/etc/"
apt-config dump 2>/dev/null |
  grep -E '^Acquire::((http|https)::(Proxy|Proxy::[^ ]*)|Check-Valid-Until|Check-Date) "..*";$' \
    >"$root/etc/apt/apt.conf.d/90archive" || true

mkdir -p "$root/root/fusion"
git ls-files --cached --others --exclude-standard -z |
  while IFS= read -r -d '' file; do
    if [[ -e $file || -L $file ]]; then printf '%s\0' "$file"; fi
  done |
  tar --create --null --files-from=- --file=- | tar --extract --no-same-owner --directory "$root/root/fusion" --file=-

# in_root COMMAND: runs it in the checkout in the root, with a clean environment and nothing mounted but /proc, /sys
# and /dev/shm.
in_root() {
  attended unshare --mount --pid --fork --kill-child --propagation private bash -c '
    mount -t proc proc "$1/proc" && mount -t sysfs -o ro sysfs "$1/sys" && mount -t tmpfs tmpfs "$1/dev/shm" || exit 1
    exec env -i HOME=/root LANG=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot "$1" \
      bash -c "cd /root/fusion && $2"' in_root "$root" "$1"
}

if [[ -n $command ]]; then
  in_root "$command"
  exit 0
fi

in_root 'for program in cc gcc g++ clang nvcc cmake ninja protoc; do
  if command -v $program; then echo "the fresh root already has $program" >&2; exit 1; fi
done' || fail "the root is not fresh"

summary=()
# timed_run SCRIPT WHICH
timed_run() {
  local begin=$SECONDS minutes
  printf '\n== Debian %s: %s, %s run\n' "$suite" "$1" "$2"
  in_root "$1" || fail "$1 failed in its $2 run on Debian $suite"
  minutes=$(awk -v seconds=$((SECONDS - begin)) 'BEGIN {printf "%.1f", seconds / 60}')
  summary+=("$(printf '%-22s %-7s %6s min' "$1" "$2" "$minutes")")
}

for script in deploy/quickstart.sh tests/run.sh; do
  timed_run "$script" first
  timed_run "$script" second
done
printf '\nDebian %s, %s cores:\n' "$suite" "$(nproc)"
printf '  %s\n' "${summary[@]}"
