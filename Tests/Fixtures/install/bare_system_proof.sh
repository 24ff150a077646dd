#!/usr/bin/env bash
# Runs the installed programs in a bare Debian: debootstrap's smallest system and the packages that
# Installing.md names for it, nothing of this machine but PREFIX.
#
#   bare_system_proof.sh [--suite bookworm|trixie] [--work DIR] PREFIX
#
# PREFIX is what scripts/install has filled. In the bare system both programs say their version, the
# example pipeline passes `check`, and two runs export from the simulator; the lines are counted and
# the files compared with the truth outside. Needs root, debootstrap, zstd and a Debian mirror (the
# default of debootstrap, or DEBIAN_MIRROR). Keeps what was downloaded in DIR.
set -euo pipefail

suite=bookworm
work=
prefix=
while (($# > 0)); do
  case $1 in
    --suite) suite=$2; shift 2 ;;
    --work) work=$2; shift 2 ;;
    *) prefix=$(realpath -- "$1"); shift ;;
  esac
done
case $suite in
  bookworm) system='Debian 12' ;;
  trixie) system='Debian 13' ;;
  *) echo "unknown suite $suite" >&2; exit 64 ;;
esac
if ((EUID != 0)); then echo 'debootstrap and chroot need root' >&2; exit 1; fi
readonly events=5000 later=200
page=$(dirname "${BASH_SOURCE[0]}")/../../../Sources/Program/PubSubETL/PubSubETL.docc/Installing.md
work=${work:-$(mktemp -d)}
mkdir -p "$work/packages-$suite"
work=$(realpath -- "$work")
root=$work/$suite

# The row of the system in Installing.md: its packages, and those that the simulator also needs.
packages=$(sed -n "s/^| $system, [^|]*|//p" "$page" | tr -d '|`' | xargs)
if [[ $packages != *libssl3* ]]; then echo "Installing.md names no packages for $system" >&2; exit 1; fi
echo "packages: $packages"

rm -rf "$root"
debootstrap --variant=minbase --include="${packages// /,}" --cache-dir="$work/packages-$suite" \
  "$suite" "$root" ${DEBIAN_MIRROR:+"$DEBIAN_MIRROR"} >"$work/$suite.log" || {
  tail "$work/$suite.log"
  exit 1
}
mkdir -p "$root/usr/local"
cp -r "$prefix/." "$root/usr/local/"

# debootstrap leaves this file to whoever sets up the network.
echo '127.0.0.1 localhost' >"$root/etc/hosts"

cat >"$root/root/inside" <<'INSIDE'
set -euo pipefail
cd /root
if command -v swift || find / -xdev -name 'libswift*' | grep .; then exit 1; fi
pubsub-etl --version
pubsub-simulator --version
cp -r /usr/local/share/pubsub-etl/pipelines .
pubsub-simulator --data random --port 0 --seed 1 --events "$EVENTS" \
  --topics /data/OpportunityChangeEvent --truth truth.ndjson --env simulator.env >simulator.log 2>&1 &
simulator=$!
trap 'kill $simulator; wait $simulator || true' EXIT
while [[ ! -e simulator.env ]]; do kill -0 $simulator; sleep 0.1; done
. ./simulator.env
pubsub-etl check pipelines/opps.json --connect
pubsub-etl run pipelines/opps.json --set run.quiet=2s --max-events "$((EVENTS - LATER))"
pubsub-etl run pipelines/opps.json --set run.quiet=2s
pubsub-etl status pipelines/opps.json
INSIDE

# In a mount namespace and a process namespace of its own: nothing is left mounted or running.
unshare --mount --pid --fork --kill-child bash -c 'mount -t proc proc "$0/proc" && exec "$@"' "$root" \
  chroot "$root" /usr/bin/env -i HOME=/root PATH=/usr/local/bin:/usr/bin:/bin \
  EVENTS=$events LATER=$later /bin/bash /root/inside

find "$root/root/out" -name '*.ndjson.zst' -print0 | xargs -0 zstd -q -t
lines=$(find "$root/root/out" -name '*.ndjson.zst' -exec zstdcat {} + | wc -l)
distinct=$(find "$root/root/out" -name '*.ndjson.zst' -exec zstdcat {} + |
  sed 's/.*"_event_id":"\([^"]*\)".*"_record_id":"\([^"]*\)".*/\1 \2/' | sort -u | wc -l)
exported=$(find "$root/root/out" -name '*.ndjson.zst' -exec zstdcat {} + |
  sed 's/.*"_event_id":"\([^"]*\)".*/\1/' | sort -u | wc -l)
if [[ $exported != "$events" || $lines != "$distinct" ]]; then
  echo "$events events published, $exported exported in $lines lines, $distinct of them distinct" >&2
  exit 1
fi
echo "$system: $events events in $lines lines, with no toolchain and no other packages"
