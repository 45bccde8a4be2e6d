#!/usr/bin/env bash
# Builds the images of deploy/container and uses them as its README says: a server with certificates, a worker of the
# host target, a job, a restart. Debian's images are pulled or, where no registry is reached, made by debootstrap.
#
#   deploy/dev/try_images.sh [--keep | --built]
#     --keep     leave the images localhost/fusion-try-server and fusion-try-worker
#     --built    use those that were left, and leave them
#
# Needs root, podman and debootstrap. What it makes is named fusion-try-PID and removed at the end. Exit status: 0 all
# good, 1 something was not, 2 bad usage, or no containers here.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

usage() { sed -n '2,11s/^# \{0,1\}//p' deploy/dev/try_images.sh >&2; exit 2; }
keep=no
case "${1:-}" in "") ;; --keep | --built) keep=yes ;; *) usage ;; esac
[[ $# -le 1 ]] || usage
command -v podman >/dev/null || { echo "try_images.sh: podman is missing" >&2; exit 2; }
readonly id=fusion-try-$$
work=$(mktemp -d)
secrets=(ca server-cert server-key worker-cert worker-key user-cert user-key)

clean_up() {
  podman rm --force --time 5 "$id-server" "$id-worker" >/dev/null 2>&1 || true
  for secret in "${secrets[@]}"; do podman secret rm "$id-$secret" >/dev/null 2>&1 || true; done
  podman volume rm "$id" >/dev/null 2>&1 || true
  podman network rm "$id" >/dev/null 2>&1 || true
  rm -rf "$work"
  [[ $keep == yes ]] || podman rmi localhost/fusion-try-server localhost/fusion-try-worker >/dev/null 2>&1 || true
  podman rmi "localhost/$id-debian:bookworm" "localhost/$id-debian:bookworm-slim" >/dev/null 2>&1 || true
}
trap clean_up EXIT

base=docker.io/library/debian
build_images() {
  if ! timeout 300 podman pull --quiet "$base:bookworm" "$base:bookworm-slim" >/dev/null 2>&1; then
    command -v debootstrap >/dev/null || { echo "try_images.sh: $base:bookworm is not reached, and debootstrap is missing" >&2; exit 2; }
    echo "making a Debian with debootstrap"
    debootstrap --variant=minbase bookworm "$work/debian" >"$work/debootstrap.log" 2>&1 || { tail "$work/debootstrap.log" >&2; exit 1; }
    base=localhost/$id-debian
    tar -C "$work/debian" -c . | podman import --quiet - "$base:bookworm" >/dev/null
    podman tag "$base:bookworm" "$base:bookworm-slim"
    rm -rf "$work/debian"
  fi
  # Said before the long part: what may not start containers need not build images of them.
  local said
  said=$(podman run --rm "$base:bookworm" true 2>&1) || { echo "try_images.sh: podman starts no container here: ${said##*$'\n'}" >&2; exit 2; }
  echo "building the images (minutes)"
  local image
  for image in server worker; do
    podman build -f "deploy/container/Containerfile.$image" -t "fusion-try-$image" --build-arg "DEBIAN=$base:bookworm" \
      --build-arg "BASE=$base:bookworm-slim" . >"$work/$image.log" 2>&1 || { tail -n 30 "$work/$image.log" >&2; exit 1; }
  done
}
[[ ${1:-} == --built ]] || build_images
podman images --format '{{.Repository}} {{.Size}}' | grep '^localhost/fusion-try-[sw]'

failed=0
check() {  # check NAME COMMAND...
  local output
  if output=$("${@:2}" 2>&1); then
    echo "ok      $1"
  else
    echo "FAILED  $1"
    sed 's/^/        /' <<<"$output" | tail -n 20
    failed=1
  fi
}
within() {  # within SECONDS COMMAND...
  local end=$((SECONDS + $1))
  until "${@:2}"; do ((SECONDS < end)) || return 1; sleep 0.5; done
}
in_log() { [[ $(podman logs "$1" 2>&1) == *"$2"* ]]; }
refuses_without_certificates() { ! podman run --rm fusion-try-server >"$work/refused" 2>&1 && grep -q -- '--tls-cert' "$work/refused"; }

bash deploy/make-certificates.sh "$work/certificates" --server "$id-server" --worker gpu1 --user eva >/dev/null
certificate() { podman secret create "$id-$1" "$work/certificates/$2" >/dev/null; }
certificate ca ca.pem
certificate server-cert "server-$id-server.pem"
certificate server-key "server-$id-server.key"
certificate worker-cert worker-gpu1.pem
certificate worker-key worker-gpu1.key
certificate user-cert user-eva.pem
certificate user-key user-eva.key
podman network create "$id" >/dev/null

hardened=(--cap-drop all --security-opt no-new-privileges)
check "server refuses to start without certificates" refuses_without_certificates
check "server starts with a root that cannot be written" podman run -d --name "$id-server" --network "$id" -v "$id:/var/lib/fusion" \
  --secret "$id-ca,target=/etc/fusion/ca.pem" --secret "$id-server-cert,target=/etc/fusion/server.pem" \
  --secret "$id-server-key,target=/etc/fusion/server.key,uid=10001,mode=0400" --read-only "${hardened[@]}" fusion-try-server
check "and listens within 20 s" within 20 in_log "$id-server" 'listening on 0.0.0.0:50051'
check "worker starts" podman run -d --name "$id-worker" --network "$id" --stop-timeout 60 \
  --secret "$id-ca,target=/etc/fusion/ca.pem" --secret "$id-worker-cert,target=/etc/fusion/worker.pem" \
  --secret "$id-worker-key,target=/etc/fusion/worker.key,uid=10002,mode=0400" --cap-drop all fusion-try-worker \
  --server "$id-server:50051" --target host --name gpu1 \
  --tls-ca /etc/fusion/ca.pem --tls-cert /etc/fusion/worker.pem --tls-key /etc/fusion/worker.key
client() {  # client ARGUMENTS...: fusion-client as eva, in a container of its own
  podman run --rm --network "$id" -v "$PWD/examples:/examples:ro" --entrypoint fusion-client \
    --secret "$id-ca,target=/etc/fusion/ca.pem" --secret "$id-user-cert,target=/etc/fusion/user.pem" \
    --secret "$id-user-key,target=/etc/fusion/user.key,uid=10001,mode=0400" --tmpfs /tmp fusion-try-server "$@" --server "$id-server:50051" \
    --tls-ca /etc/fusion/ca.pem --tls-cert /etc/fusion/user.pem --tls-key /etc/fusion/user.key
}
connected() { [[ $(client workers list) == *' connected '* ]]; }
knows_its_job() { [[ $(client jobs list) == *SUCCEEDED* ]]; }
ended_well() { podman stop --time 60 "$1" >/dev/null && [[ $(podman inspect -f '{{.State.ExitCode}}' "$1") == 0 ]]; }
check "worker is connected within 30 s" within 30 connected
echo "        $(podman logs "$id-worker" 2>&1 | grep -o 'confined by: [^"]*' | head -n 1)"
check "a job is built, run and fetched" client submit /examples/vadd.fuse --target host --output /tmp/vadd
check "server restarts" podman restart --time 30 "$id-server"
check "and knows its job within 20 s" within 20 knows_its_job
# Mostly that of the network's name server: the server has another address now, and its old one is asked for a while.
check "the worker is back within 90 s" within 90 connected
if [[ $failed == 1 ]]; then
  for name in "$id-server" "$id-worker"; do echo "        $name:"; podman logs --tail 6 "$name" 2>&1 | cut -c1-300 | sed 's/^/        /'; done
fi
check "another job" client submit /examples/gemver.fuse --size m=500 --size n=500 --target host --output /tmp/gemver
check "no process is root's" bash -c "[[ \$(podman exec $id-server id -u) == 10001 && \$(podman exec $id-worker id -u) == 10002 ]]"
check "worker stops and ended well" ended_well "$id-worker"
check "server stops and ended well" ended_well "$id-server"
exit "$failed"
