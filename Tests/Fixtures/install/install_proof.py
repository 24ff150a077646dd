"""Installs into a directory, and again over programs that run; checks what is there; removes it again.

    install_proof.py --programs DIR --work DIR --scratch-path DIR

--scratch-path: where scripts/install has built before, so that it only copies. --programs is not
used. What the installed programs load must come from the packages that Installing.md names, from the C
library, or not at all; a bare system is `bare_system_proof.sh`'s. Exits 1 with what is wrong.
"""

import argparse
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
PAGE = "/Sources/Program/PubSubETL/PubSubETL.docc/Installing.md"
PROGRAMS = ("pubsub-etl", "pubsub-simulator")
# Started by the simulator.
REHEARSED = "pubsub-etl-rehearsal"
NOBODY = 65534
# That `--version` names beside those of both programs.
LIBRARIES = {"pubsub-etl": {"libcurl", "libpq", "zstd"}, "pubsub-simulator": {"libmicrohttpd"}}


def commands(prefix):
    """Of both programs, with hyphens, as their manual pages are named."""
    def names(command, parents):
        name = parents + command["commandName"]
        yield name
        for subcommand in command.get("subcommands", []):
            if subcommand["commandName"] != "help":
                yield from names(subcommand, name + "-")
    for program in PROGRAMS:
        yield from names(json.loads(output(prefix + "/bin/" + program, "--experimental-dump-help"))["command"], "")


def expected(prefix):
    """Path below the prefix: mode."""
    files = {"share/pubsub-etl/LICENSE": 0o644, "share/pubsub-etl/first-org": 0o755, "bin/" + REHEARSED: 0o755}
    files["share/pubsub-etl/installed"] = 0o644
    for name in [REHEARSED, *commands(prefix)]:
        files["share/man/man1/%s.1" % name] = 0o644
    for name in os.listdir(ROOT + "/packaging/systemd"):
        files["lib/systemd/system/" + name] = 0o644
    for name in PROGRAMS:
        files["bin/" + name] = 0o755
        files["share/bash-completion/completions/" + name] = 0o644
        files["share/zsh/site-functions/_" + name] = 0o644
        files["share/fish/vendor_completions.d/%s.fish" % name] = 0o644
    for examples in ("/pipelines", "/deploy"):
        for directory, _, names in os.walk(ROOT + examples):
            for name in names:
                files["share/pubsub-etl/" + os.path.relpath(directory, ROOT) + "/" + name] = 0o644
    return files


def output(*command, **options):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, **options).stdout.decode()


def install(arguments, prefix):
    log = arguments.work + "/install.log"
    command = [ROOT + "/scripts/install", "--scratch-path", arguments.scratch_path, prefix]
    with open(log, "w", encoding="utf-8") as file:
        # A umask of a careful user must not hide the programs from others.
        done = subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, umask=0o077)
    if done.returncode:
        with open(log, encoding="utf-8") as file:
            sys.exit("scripts/install: exit code %d\n%s" % (done.returncode, file.read()[-2000:]))


def check_tree(prefix):
    found = {}
    for directory, _, names in os.walk(prefix):
        if stat.S_IMODE(os.stat(directory).st_mode) != 0o755 and directory != prefix:
            sys.exit("%s is not open to all" % directory)
        for name in names:
            path = os.path.join(directory, name)
            found[os.path.relpath(path, prefix)] = stat.S_IMODE(os.stat(path).st_mode)
    wanted = expected(prefix)
    if found != wanted:
        sys.exit("installed: %s" % sorted(set(found.items()) ^ set(wanted.items())))


def named_packages():
    """By column of the table of Installing.md: the packages of Debian and Ubuntu, without the suffix of their
    newer names."""
    with open(ROOT + PAGE, encoding="utf-8") as file:
        rows = [line.split("|") for line in file if re.match(r"\| Debian \d+, Ubuntu ", line)]
    if len(rows) < 2:
        sys.exit("Installing.md names no packages")
    named = {}
    for column, program in ((2, "pubsub-etl"), (3, "pubsub-simulator")):
        sets = [{p.removesuffix("t64") for p in row[column].strip(" `").split()} for row in rows]
        if sets[0] != sets[1]:
            sys.exit("Installing.md: the systems differ in %s" % sorted(sets[0] ^ sets[1]))
        named[program] = sets[0]
    named["pubsub-simulator"] |= named["pubsub-etl"]
    return named


def check_libraries(prefix):
    named, used = named_packages(), set()
    for name in PROGRAMS:
        path = prefix + "/bin/" + name
        direct = set(re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-d", path)))
        places = dict(re.findall(r"(\S+) => (/\S+)", output("ldd", path)))
        if re.search("swift|Foundation|dispatch", output("ldd", path)):
            sys.exit(name + " loads parts of the toolchain")
        for library in direct - {"ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}:
            # dpkg knows the names of before /usr/lib and /lib were merged.
            variants = {places[library], os.path.realpath(places[library])}
            variants |= {path[4:] for path in variants if path.startswith("/usr/")}
            answer = subprocess.run(
                ["dpkg", "-S", *sorted(variants)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            package = answer.stdout.decode().split(":")[0].removesuffix("t64")
            if package in ("libc6", "libgcc-s1"):
                continue
            if package not in named[name]:
                sys.exit("%s needs %s of '%s', which Installing.md does not name" % (name, library, package))
            used.add(package)
    unused = named["pubsub-simulator"] - used - {"ca-certificates"}
    if unused:
        sys.exit("Installing.md names packages that neither program needs: %s" % sorted(unused))


def check_versions(prefix):
    commit = "unknown"
    try:
        # Not the commit of a repository that this directory is only a part of.
        if os.path.samefile(output("git", "-C", ROOT, "rev-parse", "--show-toplevel").strip(), ROOT):
            commit = output("git", "-C", ROOT, "rev-parse", "--short=12", "HEAD").strip()
    except (OSError, subprocess.CalledProcessError):
        pass
    for name in PROGRAMS:
        said = output(prefix + "/bin/" + name, "--version")
        build, _, libraries = said.strip().partition("\nlibraries: ")
        if not re.fullmatch(r"\d+\.\d+\.\d+ \(commit %s\+?, release\)" % commit, build):
            sys.exit("%s --version: '%s', but the commit is %s" % (name, said, commit))
        # Each of them with its version, and those of the other program are not among them.
        pairs = dict(re.fullmatch(r"(\S+) (\d[\w.-]*)", pair).groups() for pair in libraries.split(", "))
        if set(pairs) != LIBRARIES[name] | {"glibc", "libnghttp2", "OpenSSL", "zlib"}:
            sys.exit("%s --version: '%s'" % (name, said))


def check_completions(prefix):
    share = prefix + "/share/"
    for name in PROGRAMS:
        for shell, path in (
            ("bash", "bash-completion/completions/" + name),
            ("zsh", "zsh/site-functions/_" + name),
            ("fish", "fish/vendor_completions.d/%s.fish" % name),
        ):
            with open(share + path, encoding="utf-8") as file:
                if name not in file.read():
                    sys.exit("%s does not complete %s" % (path, name))
            if any(os.path.exists(d + "/" + shell) for d in ("/bin", "/usr/bin")):
                output(shell, "-n", share + path)


def check_pipelines(prefix):
    """Each example is complete, and passes where it was installed."""
    directory = prefix + "/share/pubsub-etl/pipelines/"
    for name in os.listdir(directory):
        if not name.endswith(".json"):
            continue
        with open(directory + name, encoding="utf-8") as file:
            document = json.load(file)
        schema = document.get("$schema", "")
        if "sinks" not in document:
            continue
        if not os.path.exists(directory + schema):
            sys.exit("%s: there is no %s" % (name, schema))
        environment = {
            "SF_LOGIN_URL": "https://example.my.salesforce.com", "SF_CLIENT_ID": "id",
            "SF_CLIENT_SECRET": "secret", "DATABASE_URL": "postgresql://localhost/warehouse",
        }
        output(prefix + "/bin/pubsub-etl", "check", directory + name, env=environment)
    output(prefix + "/bin/pubsub-etl", "test", directory)


def check_replacement(arguments, prefix):
    """Installed over a program that runs: that one goes on, the next is the new one."""
    ready = arguments.work + "/simulator.env"
    program = prefix + "/bin/pubsub-simulator"
    before = os.stat(program).st_ino
    simulator = subprocess.Popen(
        [program, "--port", "0", "--events", "1", "--env", ready], stdout=subprocess.PIPE)
    try:
        if not simulator.stdout.readline().startswith(b"ready"):
            sys.exit("the installed simulator did not become ready")
        install(arguments, prefix)
        if os.stat(program).st_ino == before:
            sys.exit("a program that runs was overwritten")
        if simulator.poll() is not None:
            sys.exit("the program that ran has ended")
        check_tree(prefix)
    finally:
        simulator.send_signal(signal.SIGTERM)
        if simulator.wait() != 0:
            sys.exit("the simulator ended with %d" % simulator.returncode)


def check_manual(prefix):
    """Each page has a name and the options of its command."""
    directory = prefix + "/share/man/man1/"
    for name in os.listdir(directory):
        with open(directory + name, encoding="utf-8") as file:
            text = file.read()
        if text.startswith(".so man1/") and os.path.exists(prefix + "/share/man/" + text[4:].strip()):
            continue
        if not re.search(r"\.SH NAME\n%s \\- \S" % re.escape(name[:-2].replace("-", "\\-")), text):
            sys.exit("%s has no name" % name)
        options = ["help"] + ["max-duration", "follow"] * (name == "pubsub-etl-run.1")
        missing = [option for option in options if "\\-\\-" + option.replace("-", "\\-") not in text]
        if missing:
            sys.exit("%s does not explain %s" % (name, missing))


def check_removal(prefix):
    """What others have put there stays, and so do directories that were there before."""
    obsolete, own = prefix + "/share/pubsub-etl/obsolete", prefix + "/share/man/man1/other.1"
    listed = prefix + "/share/pubsub-etl/installed"
    for path in (obsolete, own):
        with open(path, "w", encoding="utf-8"):
            pass
    command = [ROOT + "/scripts/install", "--programs", prefix + "/bin", prefix]
    with open(listed, "a", encoding="utf-8") as file:
        file.write("share/pubsub-etl/obsolete\n")
    output(*command)
    if os.path.exists(obsolete):
        sys.exit("a file of an earlier version stayed")
    with open(listed, encoding="utf-8") as file:
        paths = file.read()
    with open(listed, "a", encoding="utf-8") as file:
        file.write("share/../../kept\n")
    refused = subprocess.run([ROOT + "/scripts/install", "--remove", prefix], stderr=subprocess.PIPE)
    if refused.returncode != 1 or b"unexpected path" not in refused.stderr:
        sys.exit("a path outside of PREFIX was not refused: %s" % refused.stderr)
    with open(listed, "w", encoding="utf-8") as file:
        file.write(paths)
    output(ROOT + "/scripts/install", "--remove", prefix)
    left = [os.path.join(directory, name) for directory, _, names in os.walk(prefix) for name in names]
    directories = sum(len(names) for _, names, _ in os.walk(prefix))
    if left != [own] or directories != len(("share", "share/man", "share/man/man1")):
        sys.exit("left after --remove: %s, %d directories" % (left, directories))


def check_refusals(work):
    """A PREFIX that cannot be written to, or is not a directory, is reported before anything is built."""
    programs = work + "/programs-without-sudo"
    os.mkdir(programs)
    for name in os.listdir("/usr/bin"):
        if name != "sudo":
            os.symlink("/usr/bin/" + name, programs + "/" + name)
    for path in (work, programs):
        os.chmod(path, 0o755)
    os.mkdir(work + "/private", 0o755)
    regular = work + "/file"
    with open(regular, "w", encoding="utf-8"):
        pass
    other = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
    # A copy, since the checkout may be closed to that user.
    os.mkdir(work + "/scripts", 0o755)
    script = shutil.copy(ROOT + "/scripts/install", work + "/scripts")
    for prefix, options, words in (
        (work + "/private/prefix", other, "cannot be written to, and there is no sudo"),
        (regular + "/prefix", {}, "is not a directory"),
    ):
        if prefix.startswith(work + "/private") and not other:
            os.chmod(work + "/private", 0o555)
        done = subprocess.run(
            [script, prefix], cwd="/", env={"PATH": programs}, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, **options)
        if done.returncode != 1 or words not in done.stderr.decode() or done.stdout:
            sys.exit("PREFIX %s: exit code %d, %s" % (prefix, done.returncode, done.stderr))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs")
    parser.add_argument("--work", required=True)
    parser.add_argument("--scratch-path", required=True)
    arguments = parser.parse_args()
    arguments.work = os.path.abspath(arguments.work)
    os.makedirs(arguments.work, exist_ok=True)
    check_refusals(arguments.work)
    prefix = arguments.work + "/prefix"
    install(arguments, prefix)
    check_tree(prefix)
    check_libraries(prefix)
    check_versions(prefix)
    check_completions(prefix)
    check_pipelines(prefix)
    check_manual(prefix)
    check_replacement(arguments, prefix)
    check_removal(prefix)


if __name__ == "__main__":
    main()
