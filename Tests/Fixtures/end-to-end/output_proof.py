"""Lost output, a renamed pipeline and readable files, with the real program.

    output_proof.py --programs DIR --work DIR

Waits are skipped (`pubsub-simulator --clock`).

Required: an emptied output directory, a deleted file behind one that is there, and a file that was cut
end `run` and `status` with 65 before anything is made, `run --accept-missing` goes on and leaves a line
in the journal, and a loader that deletes what it has read is not disturbed. `status --verify` finds a
byte that was changed. A directory in which this user may not write ends `check` and `run` in the same
words. A pipeline with another name in the same directory does not export again without
being told to, and then the views tell the two apart. Modes are those that the file says. Prints one
JSON line; exits 1 at the first thing that is wrong.
"""

import json
import os
import shutil
import stat
import subprocess
import sys

import duckdb

import harness

TOPIC = "/data/OpportunityChangeEvent"


class Proof:
    def __init__(self, arguments):
        self.arguments = arguments
        self.work = arguments.work
        self.output = self.work + "/out/opps"
        self.simulator = None
        self.document = harness.pipeline("opps", TOPIC)
        self.document["sinks"][0]["rotate"] = {"max_events": 100}
        self.document["sinks"][0]["mode"] = "0664"

    def write(self, name="opps", **sink):
        document = json.loads(json.dumps(self.document))
        document["name"] = name
        document["sinks"][0].update(sink)
        harness.write_json(self.work + "/%s.json" % name, document)

    def command(self, *command, code=0, pipeline="opps", prefix=()):
        """Runs the program; returns what it printed on both streams."""
        line = [*prefix, self.simulator.exporter, command[0], self.work + "/%s.json" % pipeline, *command[1:]]
        done = subprocess.run(line, env=self.simulator.environment, capture_output=True)
        text = (done.stdout + done.stderr).decode()
        if done.returncode != code:
            sys.exit("%s: exit %d instead of %d: %s" % (command, done.returncode, code, text))
        return text

    def expect(self, text, *parts):
        for part in parts:
            if part not in text:
                sys.exit("%r is not in: %s" % (part, text))

    def files(self):
        return sorted(harness.data_files(self.output))

    def publish(self, count=150):
        self.simulator.publish(count)

    def prove(self):
        options = ["--events", "300", "--seed", "3", "--topics", TOPIC, "--clock"]
        with harness.Simulator(self.arguments.programs, self.work, *options) as simulator:
            self.simulator = simulator
            self.write()
            self.command("run")
            result = {"files": len(self.files())}
            self.modes()
            self.emptied()
            self.deleted()
            self.cut()
            self.changed()
            self.loader()
            self.unwritable()
            self.unwritable_state()
            result["lines of the journal"] = self.journal()
            result["lines of two pipelines"] = self.renamed()
        print(json.dumps(result))

    def modes(self):
        for directory, _, names in os.walk(self.output):
            mode = stat.S_IMODE(os.stat(directory).st_mode)
            if mode != 0o775:
                sys.exit("%s has mode %o" % (directory, mode))
            for name in names:
                mode = stat.S_IMODE(os.stat(directory + "/" + name).st_mode)
                if mode != 0o664:
                    sys.exit("%s/%s has mode %o" % (directory, name, mode))

    def emptied(self):
        """The directory exists and is empty, as if the file system were not mounted."""
        shutil.move(self.output, self.work + "/elsewhere")
        os.mkdir(self.output)
        self.publish()
        self.expect(self.command("run", code=65), "_manifest.ndjson is missing", "--accept-missing")
        self.expect(self.command("status", code=65), "lost_output")
        if os.listdir(self.output):
            sys.exit("something was made in the empty directory: %s" % os.listdir(self.output))
        os.rmdir(self.output)
        self.command("run", code=65)
        shutil.move(self.work + "/elsewhere", self.output)
        self.command("run")
        self.command("status", "--verify")

    def deleted(self):
        victim = self.files()[-1]
        os.remove(victim)
        self.publish()
        self.expect(self.command("run", code=65), victim)
        self.command("run", "--accept-missing")
        self.publish()
        self.command("run")
        self.command("status")
        # A file that is gone stays gone to those who look at all.
        self.expect(self.command("status", "--verify", code=65), victim + " is missing")
        self.write(when_missing="ignore")
        self.command("status", "--verify")
        self.write()

    def cut(self):
        victim = self.files()[-1]
        content = open(victim, "rb").read()
        os.truncate(victim, len(content) - 1)
        self.expect(self.command("run", code=65), victim, "it was cut or changed")
        self.expect(self.command("status", code=65), victim)
        with open(victim, "wb") as file:
            file.write(content)
        self.command("run")

    def changed(self):
        victim = self.files()[0]
        content = bytearray(open(victim, "rb").read())
        content[50] ^= 1
        with open(victim, "wb") as file:
            file.write(content)
        self.command("run")
        self.write(when_missing="ignore")
        self.expect(self.command("status", "--verify", code=65), victim + " has the SHA-256")
        self.write()
        content[50] ^= 1
        with open(victim, "wb") as file:
            file.write(content)

    def loader(self):
        """Deletes the oldest first, between the runs and down to nothing."""
        for count in (2, 1, 100):
            for path in self.files()[:count]:
                os.remove(path)
            self.publish()
            self.command("run")
            self.command("status")

    def unwritable(self):
        directory = self.work + "/unwritable"
        os.mkdir(directory, 0o500)
        self.write("unwritable", directory=directory)
        # Root may write everywhere, unless it has laid down its capabilities.
        unprivileged = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []
        for command in (["check"], ["run", "--accept-reset"]):
            text = self.command(*command, code=74, pipeline="unwritable", prefix=unprivileged)
            self.expect(text, directory)
        if os.listdir(directory):
            sys.exit("the directory without write permission has %s" % os.listdir(directory))

    def unwritable_state(self):
        """The lock of an earlier run can be taken, and no commit could be stored: found before the login."""
        state = self.work + "/state"
        os.chmod(state, 0o500)
        unprivileged = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []
        login = self.document["source"]["org"]["auth"]["login_url"]
        self.document["source"]["org"]["auth"]["login_url"] = "http://127.0.0.1:1"
        self.write()
        self.expect(self.command("run", code=74, prefix=unprivileged), "the state directory", state)
        self.document["source"]["org"]["auth"]["login_url"] = login
        self.write()
        os.chmod(state, 0o755)
        self.command("run")

    def journal(self):
        lines = harness.read_lines(self.work + "/state/opps.journal.ndjson")
        if [line["command"] for line in lines] != ["run --accept-missing"]:
            sys.exit("the journal has %s" % lines)
        return len(lines)

    def renamed(self):
        self.write("renamed")
        text = self.command("run", code=65, pipeline="renamed")
        self.expect(text, "pipeline 'opps'", "has never run")
        self.command("run", "--accept-reset", pipeline="renamed")
        self.command("run", pipeline="renamed")
        connection = duckdb.connect()
        with open(self.output + "/_views.sql", encoding="utf-8") as file:
            connection.execute(file.read())
        query = 'SELECT _pipeline, count(*) FROM "Opportunity" GROUP BY ALL ORDER BY ALL'
        both = connection.execute(query).fetchall()
        for pipeline, count in both:
            query = 'SELECT count(*) FROM "Opportunity@%s"' % pipeline
            if connection.execute(query).fetchall() != [(count,)]:
                sys.exit("the view of pipeline %s has not its %d lines" % (pipeline, count))
        if [pipeline for pipeline, _ in both] != ["opps", "renamed"]:
            sys.exit("the view has lines of %s" % both)
        return dict(both)


def main():
    Proof(harness.arguments()).prove()


if __name__ == "__main__":
    main()
