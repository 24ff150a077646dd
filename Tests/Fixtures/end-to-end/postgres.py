"""A private PostgreSQL server for a proof, and PgBouncer in front of it.

The server programs are the newest of /usr/lib/postgresql, those of the directory that
PUBSUB_TEST_POSTGRES names, or PostgreSQL 16 of the Python package pgserver. It runs as the user postgres if we are root, in a temporary directory, on
a loopback port; everybody may log in. It ends, and its directory goes, when the script ends, however
it ends.
"""

import glob
import importlib.util
import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile

# Whom the exporter logs in as.
ROLE = "exporter"

# Starts the server, says so, waits for the end of its input, stops the server and cleans up.
SUPERVISION = """
cd /
trap '' HUP INT TERM
"$1/pg_ctl" -s -w -D "$2/data" -l "$2/log" start && echo ready && cat >/dev/null
"$1/pg_ctl" -s -w -D "$2/data" -m immediate stop 2>/dev/null
rm -rf "$2"
"""
# Runs a program until the end of its input. It is killed: a pooler asked to end may wait for clients.
ATTENDANCE = """
cd /
trap '' HUP INT TERM
"$@" >/dev/null 2>&1 </dev/null &
child=$!
echo started
cat >/dev/null
kill -KILL $child
wait $child
"""


def programs():
    named = os.environ.get("PUBSUB_TEST_POSTGRES")
    if named:
        return named
    found = [path for path in glob.glob("/usr/lib/postgresql/*/bin") if os.access(path + "/initdb", os.X_OK)]
    if not found:
        sys.exit("no PostgreSQL server: install the package postgresql")
    return max(found, key=lambda path: int(path.split("/")[-2]))


def packaged_programs(directory):
    """Copies what the package pgserver holds to where any user may read it."""
    package = importlib.util.find_spec("pgserver")
    if package is None:
        sys.exit("no package pgserver: scripts/test makes an environment that has it")
    site = os.path.dirname(os.path.dirname(package.origin))
    for name in ("pgserver/pginstall", "pgserver.libs"):
        shutil.copytree("%s/%s" % (site, name), "%s/site/%s" % (directory, name))
    return directory + "/site/pgserver/pginstall/bin"


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def psql(url, *arguments, **settings):
    """The command and its environment: without the user's settings, in UTC. Without JIT, which takes seconds to
    compile a query of a large view over a few rows."""
    command = ["psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-d", url, *arguments]
    usual = {"PGTZ": "UTC", "PGCLIENTENCODING": "UTF8", "PGOPTIONS": "-c jit=off"}
    return {"args": command, "env": {**os.environ, **usual, **settings}}


def run(url, *arguments, **options):
    """psql; ends the script if a statement fails."""
    return subprocess.run(**psql(url, *arguments), check=True, **options)


def copied(url, source):
    """The lines of COPY of a table or a query in parentheses."""
    copy = psql(url, "-c", "COPY %s TO STDOUT" % source, PGDATESTYLE="ISO")
    with subprocess.Popen(**copy, stdout=subprocess.PIPE) as process:
        for line in process.stdout:
            yield line[:-1].decode()
    if process.returncode:
        sys.exit("%s could not be read" % source)


def query(url, sql):
    """Rows of a statement as lists of text, null as ''."""
    text = run(url, "-F", "\x1f", "-c", sql, stdout=subprocess.PIPE).stdout.decode()
    return [line.split("\x1f") for line in text.split("\n")[:-1]]


class Cluster:
    """A context manager. `durable` leaves the settings that guard against a cut of the power,
    `packaged` takes the server of the package pgserver, `environment` is added to that of the server."""

    def __init__(self, durable=False, pgbouncer=False, packaged=False, settings=(), environment=()):
        self.directory = tempfile.mkdtemp(prefix="pubsub-etl-pg-", dir="/tmp")
        self.programs = packaged_programs(self.directory) if packaged else programs()
        self.prefix = []
        if os.geteuid() == 0:
            account = pwd.getpwnam("postgres")
            subprocess.run(["chown", "-R", "%d:%d" % account[2:4], self.directory], check=True)
            self.prefix = ["setpriv", "--reuid=%d" % account.pw_uid, "--regid=%d" % account.pw_gid]
            self.prefix.append("--clear-groups")
        self.port = free_port()
        self.pool_port = free_port()
        initdb = ["initdb", "--username=postgres", "--auth=trust", "--encoding=UTF8", "--no-locale"]
        initdb += ["--no-sync", "--pgdata=" + self.directory + "/data"]
        self.call(*initdb, stdout=subprocess.DEVNULL)
        lines = [
            "listen_addresses = '127.0.0.1'",
            "port = %d" % self.port,
            "unix_socket_directories = '%s'" % self.directory,
            # No answer may depend on the server's zone.
            "timezone = 'Asia/Kolkata'",
            "datestyle = 'German, DMY'",
        ]
        if not durable:
            lines += ["fsync = off", "full_page_writes = off"]
        with open(self.directory + "/data/postgresql.auto.conf", "w", encoding="utf-8") as file:
            file.write("\n".join(lines + list(settings)) + "\n")
        supervision = ["/bin/sh", "-c", SUPERVISION, "sh", self.programs, self.directory]
        self.supervisor = self.attend(["env", *environment, *supervision])
        query(self.url(), "CREATE ROLE %s LOGIN" % ROLE)
        self.pool = self.start_pool() if pgbouncer else None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in (self.pool, self.supervisor):
            if process:
                process.stdin.close()
                process.wait()

    def call(self, program, *arguments, **options):
        command = self.prefix + [self.programs + "/" + program] + list(arguments)
        subprocess.run(command, check=True, cwd="/", **options)

    def attend(self, command):
        process = subprocess.Popen(
            self.prefix + command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        if not process.stdout.readline():
            sys.exit("not started: %s" % command)
        return process

    def start_pool(self):
        """PgBouncer in transaction mode: each transaction may get another of four connections."""
        program = shutil.which("pgbouncer", path=os.environ["PATH"] + ":/usr/sbin")
        if program is None:
            sys.exit("no PgBouncer: install the package pgbouncer")
        path = self.directory + "/pgbouncer.ini"
        with open(path, "w", encoding="utf-8") as file:
            file.write(
                "[databases]\n* = host=127.0.0.1 port=%d\n" % self.port
                + "[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = %d\n" % self.pool_port
                + "auth_type = trust\nauth_file = %s/users\n" % self.directory
                + "pool_mode = transaction\nunix_socket_dir =\n"
                + "min_pool_size = 4\ndefault_pool_size = 4\nserver_round_robin = 1\n"
            )
        with open(self.directory + "/users", "w", encoding="utf-8") as file:
            file.write('"postgres" ""\n"%s" ""\n' % ROLE)
        os.chmod(path, 0o644)
        os.chmod(self.directory + "/users", 0o644)
        return self.attend(["/bin/sh", "-c", ATTENDANCE, "sh", program, path])

    def fill_pool(self, database):
        """Makes PgBouncer open all of its connections to a database for the role: one for each transaction that is
        open at the same time."""
        command = ["psql", "-XAtq", "-d", self.url(database, self.pool_port, ROLE)]
        clients = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(4)]
        for client in clients:
            client.stdin.write(b"BEGIN; SELECT pg_backend_pid();\n")
            client.stdin.flush()
        servers = {client.stdout.readline() for client in clients}
        for client in clients:
            client.communicate(b"COMMIT;\n")
        if len(servers) < 4:
            sys.exit("PgBouncer did not open four connections")

    def url(self, database="postgres", port=None, user="postgres"):
        """For libpq, as the superuser, if nobody else is named."""
        return "postgresql://%s@127.0.0.1:%d/%s" % (user, port or self.port, database)

    def make_database(self, name):
        """A database in which the exporter may make schemas and owns nothing."""
        query(self.url(), 'CREATE DATABASE "%s" TEMPLATE template0' % name)
        query(self.url(), 'GRANT CREATE ON DATABASE "%s" TO %s' % (name, ROLE))
        return self.url(name)

    def crash(self):
        """Ends the server at once: connections break, the next start recovers from the log."""
        self.control("stop", "-m", "immediate")

    def start(self):
        self.control("start", "-l", self.directory + "/log")

    def control(self, *arguments):
        self.call("pg_ctl", "-s", "-w", "-D", self.directory + "/data", *arguments)
