"""Makes the .deb and the archive twice, compares their bytes, and installs and removes both.

    package_proof.py --programs DIR --work DIR

The programs are those of scripts/install. lintian and systemd-analyze check the .deb if they are there. It is installed,
upgraded, removed and purged over a layer of this system, in namespaces of its own, if this process may make these.
Exits 1 with what is wrong; prints what could not be tried. `bare_system_proof.sh` does it in systems that have nothing.
"""

import argparse
import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile

import install_proof
from install_proof import ROOT, output

ADDED = {"share/pubsub-etl/" + name for name in ("copyright", "copyright.re2", "sbom.spdx.json")}
# Runs in the layer, as root: package, its upgrade, directory for what it has seen.
INSIDE = r"""
set -euo pipefail
export PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
mkdir -p /run/systemd/system /usr/local/sbin
# What the scripts of the package ask of systemd, which does not run here.
for name in systemctl deb-systemd-invoke; do
  rm -f "/usr/bin/$name"
  printf '#!/bin/sh\necho "%s $*" >>/asked\n' "$name" >"/usr/bin/$name"
  chmod 755 "/usr/bin/$name"
done
echo install >/asked
dpkg -i "$1"
/usr/bin/pubsub-etl --version
/usr/bin/pubsub-simulator --version
[[ $(getent passwd pubsub-etl) == *:/var/lib/pubsub-etl:/usr/sbin/nologin ]]
if command -v systemd-analyze; then
  for unit in pubsub-etl@deals.service pubsub-etl@deals.timer pubsub-etl-follow@deals.service; do
    systemd-analyze verify --man=no "$unit" 2>&1 | tee /dev/stderr | (! grep .)
  done
  # Of 100. They have 11: the network, the system's files, and output that its group may read.
  for unit in pubsub-etl@.service pubsub-etl-follow@.service; do
    systemd-analyze security --no-pager --offline=yes --threshold=12 "/usr/lib/systemd/system/$unit" >/security || {
      cat /security
      exit 1
    }
  done
fi
install -d -o pubsub-etl -m 750 /var/lib/pubsub-etl/deals
echo position >/var/lib/pubsub-etl/deals/state
echo '{}' >/etc/pubsub-etl/deals.json
enabled=/etc/systemd/system/timers.target.wants/pubsub-etl@deals.timer
mkdir -p "${enabled%/*}"
ln -s /usr/lib/systemd/system/pubsub-etl@.timer "$enabled"
dpkg --listfiles pubsub-etl | while read -r path; do if [[ -f $path ]]; then echo "$path"; fi; done >/files
echo upgrade >>/asked
dpkg -i "$2"
echo remove >>/asked
dpkg -r pubsub-etl
while read -r path; do if [[ -e $path ]]; then echo "$path stayed"; exit 1; fi; done </files
test -h "$enabled"
echo purge >>/asked
dpkg -P pubsub-etl
test ! -h "$enabled"
test "$(cat /var/lib/pubsub-etl/deals/state)" = position
test -e /etc/pubsub-etl/deals.json
cat /asked >"$3"
"""
ASKED = """install
systemctl daemon-reload
upgrade
systemctl daemon-reload
systemctl daemon-reload
systemctl try-restart pubsub-etl-follow@*.service
remove
deb-systemd-invoke stop pubsub-etl@*.timer pubsub-etl@*.service pubsub-etl-follow@*.service
systemctl daemon-reload
purge
systemctl daemon-reload
"""
LAYER = r"""
set -euo pipefail
mount -t tmpfs none "$0"
mkdir "$0"/{changes,internal,root}
mount -t overlay overlay -o "lowerdir=/,upperdir=$0/changes,workdir=$0/internal" "$0/root"
mount -t proc proc "$0/root/proc"
mount -t devtmpfs none "$0/root/dev" 2>/dev/null || mount --bind /dev "$0/root/dev"
mount --bind "$1" "$0/root/mnt"
exec chroot "$0/root" /bin/bash /mnt/inside "${@:2}"
"""


def build(arguments, directory, **environment):
    command = [ROOT + "/scripts/package", "deb", "tar", "--programs", arguments.programs, "--output", directory]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, **environment})
    if done.returncode:
        sys.exit("scripts/package: exit code %d\n%s" % (done.returncode, done.stdout.decode()[-2000:]))
    names = sorted(os.listdir(directory))
    if [name.partition("_")[0].partition("-0")[0] for name in names] != ["pubsub-etl"] * 4:
        sys.exit("scripts/package made %s" % names)
    output("sha256sum", "--check", "--quiet", *(name for name in names if name.endswith(".sha256")), cwd=directory)
    return names


def digest(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def check_archive(path, work):
    with tarfile.open(path) as archive:
        members = archive.getmembers()
    top = os.path.basename(path).split("-linux-")[0]
    if [m.name for m in members] != sorted(m.name for m in members) or members[0].name != top:
        sys.exit("the entries of the archive are not sorted, or not below %s" % top)
    if len({m.mtime for m in members}) != 1 or {(m.uid, m.gid) for m in members} != {(0, 0)}:
        sys.exit("the entries of the archive differ in time or owner")
    prefix = work + "/prefix"
    os.mkdir(prefix)
    output("tar", "-xzf", path, "-C", prefix, "--strip-components=1")
    found = {os.path.relpath(os.path.join(directory, name), prefix)
             for directory, _, names in os.walk(prefix) for name in names}
    if found != set(install_proof.expected(prefix)) | ADDED:
        sys.exit("the archive has other files: %s" % sorted(found ^ (set(install_proof.expected(prefix)) | ADDED)))
    said = output(prefix + "/bin/pubsub-etl", "--version")
    install_proof.check_pipelines(prefix)
    check_parts(prefix)
    output(ROOT + "/scripts/install", "--remove", prefix)
    if os.listdir(prefix):
        sys.exit("left of the archive after --remove: %s" % os.listdir(prefix))
    return re.match(r"(\S+) \(commit (\w+)", said).groups()


def check_parts(prefix):
    """The bill of materials has the libraries that the programs say, each once and with its version."""
    with open(prefix + "/share/pubsub-etl/sbom.spdx.json", encoding="utf-8") as file:
        bill = json.load(file)
    names = [part["name"] for part in bill["packages"]]
    wanted = {"libcurl4", "libpq5", "libssl3", "libre2-dev", "swift-runtime", "grpc-swift-2", "pubsub-etl"}
    missing = wanted - {name.removesuffix("t64") for name in names}
    if missing or len(names) != len(set(names)):
        sys.exit("the bill of materials: missing %s among %s" % (missing, names))
    if any(not re.match(r"\d", part["versionInfo"]) for part in bill["packages"]):
        sys.exit("the bill of materials has a part without a version")
    related = {relation["relatedSpdxElement"] for relation in bill["relationships"]}
    if related != {part["SPDXID"] for part in bill["packages"]}:
        sys.exit("the bill of materials has parts without a relation")


def check_package(path, version, commit, work):
    fields = dict(re.findall(r"^(\S+): (.*)$", output("dpkg-deb", "--field", path), re.MULTILINE))
    if not re.fullmatch(r"%s(~\d{14}\.%s\+?)?" % (re.escape(version), commit), fields["Version"]):
        sys.exit("the package's version is %s; the programs say %s, %s" % (fields["Version"], version, commit))
    depends = fields["Depends"]
    if "libre2" in depends and os.path.exists("/usr/lib/x86_64-linux-gnu/libre2.a") and "absl" not in output(
            "cat", "/usr/include/re2/re2.h"):
        sys.exit("the package needs RE2, which the programs contain")
    if not re.search(r"libcurl4t64 \(>= \S+\) \| libcurl4 \(", depends) or "libc6" not in depends:
        sys.exit("the package depends on %s" % depends)
    tree = work + "/tree"
    output("dpkg-deb", "--extract", path, tree)
    manual = sorted(os.listdir(tree + "/usr/share/man/man1"))
    if "pubsub-etl-run.1.gz" not in manual:
        sys.exit("the package has the manual pages %s" % manual)
    with gzip.open(tree + "/usr/share/doc/pubsub-etl/changelog.gz", "rt", encoding="utf-8") as file:
        if not file.readline().startswith("pubsub-etl (%s) " % fields["Version"]):
            sys.exit("the package's change log has another version")
    if shutil.which("lintian"):
        command = ["lintian", "--fail-on", "error,warning", "--tag-display-limit", "0", path]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if done.returncode:
            sys.exit("lintian: %s" % done.stdout.decode())
    else:
        print("not tried: lintian is not installed")


def check_installation(path, work):
    shared, layer = work + "/shared", work + "/layer"
    os.mkdir(shared)
    os.mkdir(layer)
    shutil.copy(path, shared + "/package.deb")
    output("dpkg-deb", "--raw-extract", path, work + "/newer")
    with open(work + "/newer/DEBIAN/control", encoding="utf-8") as file:
        control = re.sub(r"^(Version: .*)$", r"\1+newer", file.read(), flags=re.MULTILINE)
    with open(work + "/newer/DEBIAN/control", "w", encoding="utf-8") as file:
        file.write(control)
    output("dpkg-deb", "--root-owner-group", "-Zgzip", "-z1", "--build", work + "/newer", shared + "/newer.deb")
    with open(shared + "/inside", "w", encoding="utf-8") as file:
        file.write(INSIDE)
    # Mounts on the directory that they belong to, so nothing is left.
    namespaces = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
    attempt = subprocess.run(
        [*namespaces, "mount", "-t", "tmpfs", "none", layer], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    if os.geteuid() != 0 or attempt.returncode:
        print("not tried: installing the package, since this process may not mount")
        return
    done = subprocess.run(
        [*namespaces, "bash", "-c", LAYER, layer, shared, "/mnt/package.deb", "/mnt/newer.deb", "/mnt/asked"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        sys.exit("the package: %s" % done.stdout.decode()[-3000:])
    with open(shared + "/asked", encoding="utf-8") as file:
        asked = file.read()
    if asked != ASKED:
        sys.exit("the package asks systemd for\n%s" % asked)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs", required=True)
    parser.add_argument("--work", required=True)
    arguments = parser.parse_args()
    arguments.work = os.path.abspath(arguments.work)
    os.makedirs(arguments.work, exist_ok=True)
    first, second = arguments.work + "/first", arguments.work + "/second"
    names = build(arguments, first)
    os.umask(0o077)
    again = build(arguments, second, TZ="Asia/Tokyo", LC_ALL="C.UTF-8", TMPDIR=arguments.work)
    os.umask(0o022)
    different = [name for name in names if digest(first + "/" + name) != digest(second + "/" + name)]
    if names != again or different:
        sys.exit("made twice, but different: %s" % different)
    package, = (first + "/" + name for name in names if name.endswith(".deb"))
    archive, = (first + "/" + name for name in names if name.endswith(".tar.gz"))
    version, commit = check_archive(archive, arguments.work)
    check_package(package, version, commit, arguments.work)
    check_installation(package, arguments.work)


if __name__ == "__main__":
    main()
