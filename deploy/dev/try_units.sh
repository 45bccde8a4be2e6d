#!/usr/bin/env bash
# Runs the systemd units as a machine would: boots a Debian 12 of its own in a container, installs the package, the
# users and the units as deploy/README.md says, and uses the server and a worker of the host target.
#
#   deploy/dev/try_units.sh PACKAGE [ROOT]    PACKAGE: what deploy/package.sh made; ROOT: folder of the Debian system,
#                                             made when absent (default: /var/tmp/fusion-units; 500 MB)
#
# Needs root, systemd-container and debootstrap. Exit status: 0 all good, 1 something was not, 2 bad usage.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

usage() { sed -n '2,9s/^# \{0,1\}//p' deploy/dev/try_units.sh >&2; exit 2; }
[[ $# -ge 1 && $# -le 2 && -x $1/bin/fusion-server ]] || usage
readonly package=$1 root=${2:-/var/tmp/fusion-units}
for tool in systemd-nspawn debootstrap; do
  command -v "$tool" >/dev/null || { echo "try_units.sh: $tool is missing (Debian: systemd-container, debootstrap)" >&2; exit 2; }
done

if [[ ! -e $root/complete ]]; then
  debootstrap --variant=minbase --include=systemd,systemd-sysv,dbus,bubblewrap,g++,curl bookworm "$root" >"${root%/}.log" 2>&1 ||
    { echo "try_units.sh: debootstrap failed; see ${root%/}.log" >&2; exit 1; }
  touch "$root/complete"
fi

# As in deploy/README.md, "A farm under systemd".
rm -rf "$root/opt/fusion" "$root/var/lib/fusion" "$root/var/lib/private/fusion"
cp -R "$package" "$root/opt/fusion"
install -m 644 deploy/systemd/fusion.sysusers.conf "$root/usr/lib/sysusers.d/fusion.conf"
install -m 644 deploy/systemd/*.service "$root/etc/systemd/system/"
mkdir -p "$root/etc/fusion"
cp deploy/systemd/server.env.example "$root/etc/fusion/server.env"
cp deploy/systemd/worker.env.example "$root/etc/fusion/worker.env"

cat >"$root/root/use_units.sh" <<'INSIDE'
#!/bin/bash
# Runs in the container once it is up.
exec >/root/result.txt 2>&1
export FUSION_SERVER=127.0.0.1:50051
client=/opt/fusion/bin/fusion-client
check() {  # check NAME COMMAND...
  local output
  if output=$("${@:2}" 2>&1); then echo "ok      $1"; else echo "FAILED  $1"; sed 's/^/        /' <<<"$output" | tail -n 20; fi
}
within() {  # within SECONDS COMMAND...
  local end=$((SECONDS + $1))
  until "${@:2}"; do ((SECONDS < end)) || return 1; sleep 0.2; done
}
in_journal() { journalctl --no-pager -u "$1" | grep -q "$2"; }
ended_well() { [[ $(systemctl show -P Result "$1") == success && $(systemctl show -P ExecMainStatus "$1") == 0 ]]; }
nothing_failed() { [[ -z $(systemctl --failed --no-legend) ]]; }
check "server starts" systemctl start fusion-server
check "and answers from then on" "$client" jobs list
check "worker starts" systemctl start fusion-worker
check "and is ready within 5 s" within 5 curl -fs http://127.0.0.1:9465/readyz
check "bubblewrap confines runners, host code and compilers" \
  in_journal fusion-worker 'runners bubblewrap, seccomp, limits; host code bubblewrap, seccomp, limits; compilers bubblewrap'
check "a job is built, run and fetched" "$client" submit /opt/fusion/examples/vadd.fuse --target host --output /root/vadd --force
check "server restarts" systemctl restart fusion-server
check "and knows its job" bash -c "$client jobs list | grep -q SUCCEEDED"
check "the worker is back within 10 s" within 10 bash -c "$client workers list | grep -q ' connected '"
check "another job" "$client" submit /opt/fusion/examples/gemver.fuse --size m=500 --size n=500 --target host --output /root/gemver --force
check "backup" "$client" backup
check "worker stops" systemctl stop fusion-worker
check "and ended well" ended_well fusion-worker
check "server stops" systemctl stop fusion-server
check "and ended well" ended_well fusion-server
check "no unit has failed" nothing_failed
systemd-analyze security --no-pager fusion-server fusion-worker | grep '^fusion'
echo complete
sync
systemctl poweroff
INSIDE
chmod 755 "$root/root/use_units.sh"
cat >"$root/etc/systemd/system/use-units.service" <<'UNIT'
[Unit]
After=multi-user.target
[Service]
Type=exec
ExecStart=/root/use_units.sh
[Install]
WantedBy=multi-user.target
UNIT
rm -f "$root/root/result.txt"
# No unit is registered with the machine's own service manager, which need not be systemd. Loopback is the container's.
nspawn() { systemd-nspawn --register=no --keep-unit --quiet --private-network -D "$root" "$@" </dev/null; }
nspawn systemd-sysusers >"$root.boot.log" 2>&1
nspawn systemctl enable use-units >>"$root.boot.log" 2>&1
timeout 300 systemd-nspawn --register=no --keep-unit --private-network -D "$root" --boot </dev/null >>"$root.boot.log" 2>&1 || true

cat "$root/root/result.txt"
grep -q '^complete$' "$root/root/result.txt" && ! grep -q '^FAILED' "$root/root/result.txt"
