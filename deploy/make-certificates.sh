#!/usr/bin/env bash
# Makes the certificates of a small farm: an authority, and one certificate for each server, worker and person.
#
#   deploy/make-certificates.sh DIR [--server HOST]... [--worker NAME]... [--admin NAME]... [--user NAME]... [--proxy NAME]...
#   deploy/make-certificates.sh DIR --renew CERTIFICATE...     new certificates with the keys they have
#   deploy/make-certificates.sh DIR --revoke CERTIFICATE...    writes their fingerprints into DIR/revoked.txt
#
#     DIR           gets ca.pem and ca.key, and for each certificate <kind>-<name>.pem and .key; keys are for
#                   their owner alone (mode 600). Keep ca.key off the servers
#     HOST          a name or an address at which clients reach the server; "a,b" is one server with two, in
#                   the files server-a
#     NAME          letters, digits and . _ @ -; a worker's is what it calls itself (fusion-worker --name)
#     CERTIFICATE   server-HOST, worker-NAME, admin-NAME, user-NAME or proxy-NAME, as its file is called
#     --days N      days that new certificates are good for (default 365; the authority: 3650)
#
# What is there already stays as it is, so that the script may be run again to add more. A certificate that is
# renewed replaces its file in one step; running servers and workers read it within seconds. To put a new
# authority in the place of the old one, make it in another folder, let everybody trust both (cat both ca.pem),
# renew, then trust the new one alone.
#
# Exit status: 0 done, 1 failed, 2 bad usage.
set -euo pipefail

usage() {
  sed -n '2,23s/^# \{0,1\}//p' "$0"
}

fail_usage() {
  echo "make-certificates.sh: $1" >&2
  exit 2
}

fail() {
  echo "make-certificates.sh: $1" >&2
  exit 1
}

if [[ $# -eq 0 ]]; then usage >&2; exit 2; fi
case "$1" in
  -h | --help) usage; exit 0 ;;
  -*) fail_usage "the folder comes first; see --help" ;;
esac
directory=$1
shift

days=365
wanted=()   # "kind name"
renewed=()
revoked=()
while [[ $# -gt 0 ]]; do
  case "$1" in
    --server | --worker | --admin | --user | --proxy | --days)
      if [[ $# -lt 2 ]]; then fail_usage "$1 needs a value"; fi
      if [[ $1 == --days ]]; then days=$2; else wanted+=("${1#--} $2"); fi
      shift 2
      ;;
    --renew | --revoke)
      option=$1
      shift
      if [[ $# -eq 0 || $1 == --* ]]; then fail_usage "$option needs the name of a certificate, such as worker-gpu1"; fi
      while [[ $# -gt 0 && $1 != --* ]]; do
        if [[ $option == --renew ]]; then renewed+=("$1"); else revoked+=("$1"); fi
        shift
      done
      ;;
    -h | --help) usage; exit 0 ;;
    *) fail_usage "unknown option $1; see --help" ;;
  esac
done
if [[ ! $days =~ ^[1-9][0-9]{0,4}$ ]]; then fail_usage "--days $days: must be a number of days"; fi
command -v openssl >/dev/null || fail "openssl is not there; install the package openssl"

umask 077
mkdir -p "$directory"
cd "$directory"

# Prints what openssl says only when it fails.
quietly() {
  local log
  if ! log=$("$@" 2>&1); then
    echo "$log" >&2
    fail "this failed: $*"
  fi
}

make_key() {
  quietly openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1.partial"
  chmod 600 "$1.partial"
  mv "$1.partial" "$1"
}

make_authority() {
  if [[ -e ca.pem || -e ca.key ]]; then
    [[ -e ca.pem && -e ca.key ]] || fail "$directory has only one of ca.pem and ca.key; both are needed"
    return
  fi
  make_key ca.key
  quietly openssl req -x509 -new -key ca.key -sha256 -days 3650 -subj "/O=fusion/CN=fusion farm authority" \
    -addext "basicConstraints=critical,CA:TRUE,pathlen:0" -addext "keyUsage=critical,keyCertSign,cRLSign" \
    -out ca.pem.partial
  mv ca.pem.partial ca.pem
  chmod 644 ca.pem
  echo "ca.pem: the authority"
}

# The extensions of a certificate: what it is for, and the names in it.
extensions_of() {
  local kind=$1 name=$2 host names=
  echo "basicConstraints=critical,CA:FALSE"
  echo "keyUsage=critical,digitalSignature"
  if [[ $kind == server ]]; then
    echo "extendedKeyUsage=serverAuth"
    if [[ -e server-${name%%,*}.pem ]]; then
      # Renewed: all the names that it had.
      names=$(openssl x509 -in "server-${name%%,*}.pem" -noout -ext subjectAltName | sed '1d; s/^ *//; s/IP Address:/IP:/g')
    else
      for host in ${name//,/ }; do
        if [[ $host =~ ^[0-9.]+$ || $host == *:* ]]; then names+=",IP:$host"; else names+=",DNS:$host"; fi
      done
    fi
    echo "subjectAltName=${names#,}"
  else
    echo "extendedKeyUsage=clientAuth"
    echo "subjectAltName=URI:fusion://$kind/$name"
  fi
}

check_name() {
  local kind=$1 name=$2
  if [[ $kind == server ]]; then
    [[ $name =~ ^[A-Za-z0-9.,:_-]{1,200}$ ]] || fail_usage "--server $name: must be a host's name or address"
  else
    [[ $name =~ ^[A-Za-z0-9._@-]{1,64}$ ]] ||
      fail_usage "--$kind $name: must be 1 to 64 letters, digits and the characters . _ @ -"
  fi
}

# Signs a certificate for the key that is there, and puts it into its place in one step.
sign() {
  local kind=$1 name=$2 file=$1-${2%%,*}
  extensions_of "$kind" "$name" >"$file.extensions"
  # The name may be longer than a common name; the names that count are in the extensions.
  quietly openssl req -new -key "$file.key" -subj "/O=fusion/OU=$kind/CN=${name:0:60}" -out "$file.request"
  quietly openssl x509 -req -in "$file.request" -CA ca.pem -CAkey ca.key -set_serial "0x$(openssl rand -hex 16)" \
    -sha256 -days "$days" -extfile "$file.extensions" -out "$file.pem.partial"
  mv "$file.pem.partial" "$file.pem"
  chmod 644 "$file.pem"
  rm -f "$file.request" "$file.extensions"
}

fingerprint_of() {
  openssl x509 -in "$1" -noout -fingerprint -sha256 | sed 's/^.*=//; s/://g' | tr 'A-F' 'a-f'
}

kind_of() {
  [[ $1 =~ ^(server|worker|admin|user|proxy)-(.+)$ ]] ||
    fail_usage "$1: must be server-HOST, worker-NAME, admin-NAME, user-NAME or proxy-NAME"
  [[ -e $1.pem && -e $1.key ]] || fail "there is no certificate $1 in $directory"
}

for entry in "${wanted[@]}"; do check_name "${entry%% *}" "${entry#* }"; done
for file in "${renewed[@]}" "${revoked[@]}"; do kind_of "$file"; done

make_authority
# Servers are told to read it, so it is there from the beginning.
if [[ ! -e revoked.txt ]]; then
  echo "# SHA-256 fingerprints of certificates that are good no more" >revoked.txt
  chmod 644 revoked.txt
fi

for entry in "${wanted[@]}"; do
  kind=${entry%% *}
  name=${entry#* }
  file=$kind-${name%%,*}
  if [[ -e $file.pem ]]; then
    echo "$file.pem: there already"
    continue
  fi
  [[ -e $file.key ]] || make_key "$file.key"
  sign "$kind" "$name"
  echo "$file.pem: made, good for $days days"
done

for file in "${renewed[@]}"; do
  if grep -q "^$(fingerprint_of "$file.pem")" revoked.txt; then
    fail "$file was revoked, and its key may be known to others: delete $file.pem and $file.key in $directory, then make it anew"
  fi
  sign "${file%%-*}" "${file#*-}"
  echo "$file.pem: renewed, good for $days days"
done

for file in "${revoked[@]}"; do
  fingerprint=$(fingerprint_of "$file.pem")
  if ! grep -q "^$fingerprint" revoked.txt; then
    # In one step: a server may read it at any time.
    cp revoked.txt revoked.txt.partial
    echo "$fingerprint  # $file, $(date -u +%Y-%m-%d)" >>revoked.txt.partial
    chmod 644 revoked.txt.partial
    mv revoked.txt.partial revoked.txt
  fi
  echo "$file.pem: revoked; copy $directory/revoked.txt to the server if it reads another copy"
done
