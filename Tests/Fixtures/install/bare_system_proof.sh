#!/usr/bin/env bash
# Runs the installed programs in a bare Debian or Ubuntu: the smallest system and the packages that the
# programs need, nothing of this machine but what is installed.
#
#   bare_system_proof.sh [--suite bookworm|trixie|jammy|noble] [--work DIR] PREFIX|FILE.deb|FILE.tar.gz
#
# PREFIX is what scripts/install has filled; the files are those of scripts/package. A .deb brings its packages;
# for the others, they are those of Installing.md. In the bare system both programs say their version, the
# example pipeline passes `check`, and two runs export from the simulator; the lines are counted and the files
# compared with the truth outside. A .deb is also upgraded, removed and purged, and the output stays.
#
# Needs root, mmdebstrap, zstd and a mirror (DEBIAN_MIRROR or UBUNTU_MIRROR replace the usual one; UBUNTU_KEYRING
# is the keyring of Ubuntu's archive). Keeps the bare system in DIR.
set -euo pipefail

suite=bookworm
work=
given=
while (($# > 0)); do
  case $1 in
    --suite) suite=$2; shift 2 ;;
    --work) work=$2; shift 2 ;;
    *) given=$(realpath -e -- "$1"); shift ;;
  esac
done
mirror=${UBUNTU_MIRROR:-http://archive.ubuntu.com/ubuntu}
options=('--components=main,universe' ${UBUNTU_KEYRING:+--keyring="$UBUNTU_KEYRING"})
case $suite in
  bookworm) system='Debian 12'; mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian} options=() ;;
  trixie) system='Debian 13'; mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian} options=() ;;
  jammy) system='Ubuntu 22.04' ;;
  noble) system='Ubuntu 24.04' ;;
  *) echo "unknown suite $suite" >&2; exit 64 ;;
esac
if ((EUID != 0)); then echo 'mmdebstrap and chroot need root' >&2; exit 1; fi
readonly events=5000 later=200
page=$(dirname "${BASH_SOURCE[0]}")/../../../Sources/Program/PubSubETL/PubSubETL.docc/Installing.md
work=${work:-$(mktemp -d)}
mkdir -p "$work"
work=$(realpath -- "$work")
root=$work/$suite

packages=
if [[ $given != *.deb ]]; then
  # The row of the system in Installing.md: its packages, and those that the simulator also needs.
  packages=$(sed -nE "s/^\| [^|]*${system}[^|]*\|//p" "$page" | tr -d '|`' | xargs)
  if [[ $packages != *libssl3* ]]; then echo "Installing.md names no packages for $system" >&2; exit 1; fi
  echo "packages: $packages"
fi
if [[ ! -e $work/$suite.tar ]]; then
  mmdebstrap --quiet --variant=minbase --include=apt "${options[@]}" "$suite" "$work/$suite.tar" "$mirror"
fi
rm -rf "$root"
mkdir "$root"
tar -xf "$work/$suite.tar" -C "$root"
# The bare system leaves these files to whoever sets up the network.
echo '127.0.0.1 localhost' >"$root/etc/hosts"
cp /etc/resolv.conf "$root/etc/resolv.conf"

case $given in
  *.deb)
    cp "$given" "$root/root/package.deb"
    # The same with a later version, for the upgrade.
    dpkg-deb --raw-extract "$given" "$work/newer"
    sed -i 's/^Version: .*/&+newer/' "$work/newer/DEBIAN/control"
    dpkg-deb --root-owner-group -Zgzip -z1 --build "$work/newer" "$root/root/newer.deb" >/dev/null
    rm -r "$work/newer"
    ;;
  *.tar.gz)
    mkdir -p "$root/usr/local"
    tar -xzf "$given" -C "$root/usr/local" --strip-components=1
    ;;
  *) cp -r "$given/." "$root/usr/local/" ;;
esac

cat >"$root/root/inside" <<'INSIDE'
set -euo pipefail
cd /root
export DEBIAN_FRONTEND=noninteractive
add() { apt-get install -y -q --no-install-recommends "$@" >>apt.log 2>&1 || { tail apt.log; exit 1; }; }
apt-get update -q >apt.log
if [[ -e package.deb ]]; then
  add ./package.deb
  prefix=/usr
else
  # shellcheck disable=SC2086
  add $PACKAGES
  prefix=/usr/local
fi
if command -v swift || find / -xdev -name 'libswift*' | grep .; then exit 1; fi
pubsub-etl --version
pubsub-simulator --version
pubsub-etl --help >help
cp -r $prefix/share/pubsub-etl/pipelines .
pubsub-simulator --data random --port 0 --seed 1 --events "$EVENTS" \
  --topics /data/OpportunityChangeEvent --truth truth.ndjson --env simulator.env >simulator.log 2>&1 &
simulator=$!
trap 'kill $simulator; wait $simulator || true' EXIT
while [[ ! -e simulator.env ]]; do kill -0 $simulator; sleep 0.1; done
. ./simulator.env
pubsub-etl check pipelines/opps.json --connect
if [[ ! -e package.deb ]]; then
  pubsub-etl run pipelines/opps.json --set run.quiet=2s --max-events "$((EVENTS - LATER))"
  pubsub-etl run pipelines/opps.json --set run.quiet=2s
  pubsub-etl status pipelines/opps.json
  exit
fi

# As the units do.
state=/var/lib/pubsub-etl
install -d -o pubsub-etl -g pubsub-etl -m 750 $state $state/opps
cp pipelines/opps.json /etc/pubsub-etl
chmod -R a+rX /tmp/pubsub-simulator-*
as_unit() {
  setpriv --reuid pubsub-etl --regid pubsub-etl --clear-groups \
    pubsub-etl "$1" /etc/pubsub-etl/opps.json --root $state/opps "${@:2}"
}
as_unit run --set run.quiet=2s --max-events "$((EVENTS - LATER))"
add ./newer.deb
dpkg-query --show pubsub-etl | grep '+newer$'
as_unit run --set run.quiet=2s
as_unit status
mkdir -p /etc/systemd/system/timers.target.wants
ln -s /usr/lib/systemd/system/pubsub-etl@.timer /etc/systemd/system/timers.target.wants/pubsub-etl@opps.timer
find $state -type f -exec sha256sum {} + >before
dpkg --listfiles pubsub-etl | while read -r path; do if [[ -f $path ]]; then echo "$path"; fi; done >files
apt-get remove -y -q pubsub-etl >>apt.log
while read -r path; do if [[ -e $path ]]; then echo "$path stayed"; exit 1; fi; done <files
test -h /etc/systemd/system/timers.target.wants/pubsub-etl@opps.timer
apt-get purge -y -q pubsub-etl >>apt.log
test ! -h /etc/systemd/system/timers.target.wants/pubsub-etl@opps.timer
sha256sum --quiet --check before
test -e /etc/pubsub-etl/opps.json
mkdir out
cp -r $state/out/opps out
INSIDE

# In a mount namespace and a process namespace of its own: nothing is left mounted or running.
unshare --mount --pid --fork --kill-child bash -c 'mount -t proc proc "$0/proc" && exec "$@"' "$root" \
  chroot "$root" /usr/bin/env -i HOME=/root PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
  EVENTS=$events LATER=$later PACKAGES="$packages" /bin/bash /root/inside

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
