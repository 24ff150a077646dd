"""The sections of scripts/bench, each of which measures one thing and prints a table."""

import dataclasses
import datetime
import json
import os
import platform
import shutil
import subprocess
import sys

import corpus  # and where the modules of proofs are
import contestants
import harness
import machine
import report
import tables
import waits

# Of sections counts and memory. A machine with much other load had 4.9 switches and 40 MiB.
LIMITS = {"voluntary switches per response": 8, "peak MiB": 56}
# Instructions per event, as counted when they were last changed; 3 % more are too many.
INSTRUCTIONS = {"opportunity": 10291, "account": 12779, "wide": 75601, "platform": 3922}
INSTRUCTIONS_LIMIT = 1.03


class Bench:
    def __init__(self, arguments, names):
        self.arguments = arguments
        self.quick = arguments.quick
        self.names = arguments.section or (["files"] if self.quick else names)
        self.tools = os.path.abspath(arguments.tools)
        self.programs = os.path.abspath(arguments.programs)
        self.against = arguments.against and os.path.abspath(arguments.against)
        self.work = self.tools + "/work"
        self.rounds = arguments.rounds or (3 if self.quick else 5)
        self.events = arguments.events or (50_000 if self.quick else 500_000)
        self.most_others = arguments.most_others / 100
        attempts = arguments.attempts or (1 if self.quick else 5)
        self.machine = machine.Machine(self.most_others, attempts, 0 if attempts == 1 else 60)
        self.result = {"machine": self.describe(), "sections": {}}
        shutil.rmtree(self.work, ignore_errors=True)
        os.makedirs(self.work)

    def describe(self):
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
        versions = {
            name: subprocess.run([directory + "/pubsub-etl", "--version"], check=True, capture_output=True, text=True)
            .stdout.strip()
            for name, directory in (("programs", self.programs), ("against", self.against)) if directory}
        return {
            "cores": os.cpu_count(), "processor": names[0] if names else platform.machine(),
            "kernel": platform.release(),
            "time": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"), **versions}

    def turns(self, contestants, events, servers):
        """The figures of contestants that take turns."""
        counts = {each.name: [each.events(events), each.events(4 * events)] for each in contestants}
        pairs = {each.name: [] for each in contestants}
        for turn in range(self.rounds):
            for each in contestants:
                self.progress("%s, round %d of %d" % (each.name, turn + 1, self.rounds))
                pairs[each.name].append([
                    self.machine.measure(lambda: each.sample(self.work, count, servers))
                    for count in counts[each.name]])
        self.progress("")
        return {name: report.row(pairs[name], counts[name]) for name in pairs}

    def files(self, shape="opportunity", events=None):
        recorded = corpus.Corpus(self.programs, self.work, shape)
        with contestants.Service(self.tools, self.work, recorded) as service:
            ours = contestants.PubSubETL("pubsub-etl", self.programs, service, recorded)
            taking_part = [
                ours,
                contestants.PubSubETL("pubsub-etl, content", self.programs, service, recorded, is_content=True),
                contestants.Bound("C++, content", self.tools, service, recorded, is_content=True),
                contestants.Bound("C++, promise", self.tools, service, recorded),
                contestants.Python("Python", service, recorded),
                contestants.Zstd("zstd -1", self.work, ours),
            ]
            if self.against:
                other = contestants.PubSubETL("pubsub-etl, other version", self.against, service, recorded)
                taking_part.insert(1, other)
            rows = self.turns(taking_part, events or self.events, [service.process.pid])
        pairs = {
            "default line / C++ that neither hashes nor syncs": ("pubsub-etl", "C++, content"),
            "same content": ("pubsub-etl, content", "C++, content"),
            "same promise": ("pubsub-etl", "C++, promise"),
            "beside Python": ("pubsub-etl", "Python"),
            "this version / the other": ("pubsub-etl", "pubsub-etl, other version"),
        }
        ratios = {}
        for name, (one, other) in pairs.items():
            if other in rows:
                rate = report.ratio(rows[other], rows[one], "wall")
                ratios[name] = {"cpu": report.ratio(rows[one], rows[other], "cpu"), "rate": rate}
        zstd = taking_part[-1]
        size = zstd.written[max(zstd.written)] / rows[zstd.name]["largest_file"]
        title = "%s events of %.0f bytes to files" % (shape, recorded.payload_bytes)
        self.show(title, report.rows_table(rows, self.most_others))
        print("\n" + report.ratios_table(ratios))
        print("\ncompressed size / zstd -1 of the same lines: %.3f" % size)
        return {"payload_bytes": recorded.payload_bytes, "rows": rows, "ratios": ratios, "size_of_zstd": size}

    def shapes(self):
        return {shape: self.files(shape, self.events // 4) for shape in ("account", "wide", "platform")}

    def memory(self):
        """One round: memory that grows does so in each."""
        recorded = corpus.Corpus(self.programs, self.work, "opportunity")
        found = {}
        with contestants.Service(self.tools, self.work, recorded) as service:
            ours = contestants.PubSubETL("pubsub-etl", self.programs, service, recorded)
            for events in (self.events // 5, self.events * 2, self.events * 20):
                self.progress("%d events" % events)
                found[events] = ours.sample(self.work, events, [service.process.pid])
        self.progress("")
        self.show("Memory of one topic", report.table(
            ["events", "peak MiB", "seconds", "events/s", "CPU us/event"],
            [[report.number(events, 0), report.number(each.peak_mib, 0), report.number(each.wall),
              report.number(events / each.wall, 0), report.number(each.cpu / events * 1e6)]
             for events, each in found.items()]))
        self.hold_to_limits({"peak MiB": max(each.peak_mib for each in found.values())})
        return {events: dataclasses.asdict(each) for events, each in found.items()}

    def hold_to_limits(self, found):
        if self.arguments.limits and any(value > LIMITS[name] for name, value in found.items()):
            sys.exit("above the limit: %s; the limits are %s" % (found, LIMITS))

    def topics(self):
        """The same number of events, of one topic and of 200."""
        recorded = corpus.Corpus(self.programs, self.work, "opportunity")
        with contestants.Service(self.tools, self.work, recorded) as service:
            taking_part = [
                contestants.ManyTopics("%d topics" % count, self.programs, service, recorded, count)
                for count in (1, 200)]
            rows = self.turns(taking_part, self.events * 3 // 10, [service.process.pid])
        one, many = rows["1 topics"], rows["200 topics"]
        ratio = report.ratio(many, one, "cpu")
        head = ["", "events", "CPU us/event", "whole run", "events/s", "peak MiB", "files", "others"]
        self.show("Topics", report.table(head, [
            [name, report.number(each["events"][1], 0), report.between(each["cpu_us"]),
             report.number(report.of_long_runs(each, "cpu") / each["events"][1] * 1e6),
             report.between(each["events_per_second"], digits=0), report.number(each["peak_mib"], 0),
             report.number(report.of_long_runs(each, "files"), 0), report.others(each, self.most_others)]
            for name, each in rows.items()]))
        print("\nCPU of 200 topics / of one: %s" % report.between(ratio))
        return {"rows": rows, "cpu_ratio": ratio}

    def metrics(self):
        """What it costs to count."""
        recorded = corpus.Corpus(self.programs, self.work, "opportunity")
        with contestants.Service(self.tools, self.work, recorded) as service:
            taking_part = [
                kind(name, self.programs, service, recorded)
                for kind, name in ((contestants.PubSubETL, "without"), (contestants.WithMetrics, "with metrics"))]
            rows = self.turns(taking_part, self.events, [service.process.pid])
        ratio = report.ratio(rows["with metrics"], rows["without"], "cpu")
        self.show("Metrics", report.rows_table(rows, self.most_others))
        print("\nCPU with metrics / without: %s" % report.between(ratio))
        return {"rows": rows, "cpu_ratio": ratio}

    def waits(self):
        """Rates and times that no processor bounds."""
        found = waits.measure(self)
        head = ["", "median", "min", "max"]
        self.show("Waits", report.table(head, [
            [name, *(report.number(values[each]) for each in ("median", "min", "max"))]
            for name, values in found.items()]))
        return found

    def proof(self, script, *options):
        """The JSON line of a proof that measures something itself."""
        command = [sys.executable, "%s/%s" % (corpus.FIXTURES, script), "--programs", self.programs]
        done = subprocess.run(
            [*command, "--work", self.work + "/proof", *options], stdout=subprocess.PIPE, check=True)
        return json.loads(done.stdout.splitlines()[-1])

    def snapshot(self):
        """First copies of records, each three rounds beside COPY of the finished table."""
        records = 2 * self.events
        found, rows = {}, []
        for mode in ("current", "both"):
            found[mode] = self.proof(
                "end-to-end/snapshot_proof.py", "--measure", "--existing", str(records), "--mode", mode, "--topics",
                corpus.TOPICS["opportunity"], "--simulator-options=--keepalive-interval 1")["Opportunity"]
            ours, copy = found[mode]["snapshot"], found[mode]["copy"]
            # From the first commit to the last, if there are several.
            load = ours["load"] or ours
            rows.append([
                mode, report.number(load["rows_per_second"], 0), report.number(copy["rows_per_second"], 0),
                report.number(load["of_copy"]), report.number(ours["peak_mib"], 0)])
        self.show("First copy of %d records" % records, report.table(
            ["mode", "rows/s", "COPY rows/s", "ratio", "peak MiB"], rows))
        return found

    def counts(self):
        """What no clock measures, and what must not become more: for tests."""
        recorded = corpus.Corpus(self.programs, self.work, "opportunity")
        with contestants.Service(self.tools, self.work, recorded) as service:
            ours = contestants.PubSubETL("pubsub-etl", self.programs, service, recorded)
            [row] = self.turns([ours], self.events, [service.process.pid]).values()
        found = {
            "voluntary switches per response": row["switches_per_response"]["voluntary"], "peak MiB": row["peak_mib"]}
        self.show("Counts of %d events" % row["events"][1], report.table(
            ["", "count", "limit"],
            [[name, report.number(value), report.number(LIMITS[name])] for name, value in found.items()]))
        self.hold_to_limits(found)
        return found

    def instructions(self):
        """Decoding and encoding on one thread. The slope between one and three passes over the same events."""
        subprocess.run(
            ["swift", "build", "-c", "release", "--scratch-path", self.arguments.scratch, "--static-swift-stdlib",
             "-debug-info-format", "none", "--product", "EventBenchmark"], check=True, stdout=subprocess.DEVNULL)
        events, found, rows = 500, {}, []
        for shape, expected in INSTRUCTIONS.items():
            self.progress(shape)
            options = ["--topic", corpus.TOPICS[shape], "--events", str(events)]
            if shape == "wide":
                recorded = corpus.Corpus(self.programs, self.work, shape)
                options += ["--payloads", recorded.events, "--schema", recorded.schema]
            once, thrice = (self.count_instructions([*options, "--passes", str(passes)]) for passes in (1, 3))
            found[shape] = (thrice - once) / 2 / events
            rows.append([shape, report.number(found[shape], 0), report.number(expected, 0),
                         report.number(found[shape] / expected, 3)])
        self.progress("")
        self.show("Instructions per event", report.table(["events", "count", "expected", "ratio"], rows))
        if self.arguments.limits and any(
                count > INSTRUCTIONS_LIMIT * INSTRUCTIONS[shape] for shape, count in found.items()):
            sys.exit("more than %g times the instructions that are expected" % INSTRUCTIONS_LIMIT)
        return found

    def count_instructions(self, options):
        path = self.work + "/callgrind"
        command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=" + path,
                   self.arguments.scratch + "/release/EventBenchmark", *options]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            sys.exit("%s ended with %d: %s" % (" ".join(command), done.returncode, done.stderr[-2000:]))
        with open(path, encoding="utf-8") as file:
            [total] = [line.split()[1] for line in file if line.startswith(("summary:", "totals:"))][:1]
        return int(total)

    def allocations(self):
        found = self.proof("allocations/allocation_proof.py")
        self.show("Heap allocations", report.table(
            ["topic", "per event", "per response"],
            [[topic, report.number(each["per_event"]), report.number(each["per_response"])]
             for topic, each in found.items()]))
        return found

    def tables(self):
        # Whole transactions, because COPY has these alone.
        events = max(tables.TRANSACTION, self.events // 5 // tables.TRANSACTION * tables.TRANSACTION)
        options = ["--diffs", "0", "--exotic", "0"]
        rows = {}
        for refused in (0, 0.02):
            recorded = corpus.Corpus(self.programs, self.work, "opportunity", options, refused)
            with contestants.Service(self.tools, self.work, recorded) as service, tables.cluster() as server:
                def load(name, mode):
                    return tables.Load(name, mode, self, service, recorded, server)

                if refused:
                    taking_part = [load("both, 2 % refused", "both")]
                else:
                    history, both = load("history", "history"), load("both", "both")
                    taking_part = [
                        history, tables.Copy("COPY into the history", history, server, self.work), both,
                        tables.HandWritten("SQL for both", both, server, self.work)]
                servers = [service.process.pid, tables.server_of(server)]
                rows.update(self.turns(taking_part, events, servers))
        pairs = {
            "history / COPY of the same rows": ("history", "COPY into the history"),
            "both / SQL written by hand": ("both", "SQL for both"),
            "both with 2 % refused / without": ("both, 2 % refused", "both"),
        }
        ratios = {name: report.ratio(rows[other], rows[one], "wall") for name, (one, other) in pairs.items()}
        self.show("Opportunity events to PostgreSQL, in transactions of %d" % tables.TRANSACTION,
                  report.loads_table(rows, self.most_others))
        print("\n" + report.table(
            ["ratio", "events/s"], [[name, report.between(each)] for name, each in ratios.items()]))
        return {"rows": rows, "ratios": ratios}

    def progress(self, text):
        """One line, at a terminal."""
        if sys.stderr.isatty():
            print("\r\033[K" + text, end="", file=sys.stderr, flush=True)

    def show(self, title, text):
        print("\n== %s\n\n%s" % (title, text), flush=True)

    def run(self):
        path = os.path.abspath(self.arguments.json or self.tools + "/figures.json")
        print(", ".join("%s %s" % each for each in self.result["machine"].items()))
        for name in self.names:
            self.result["sections"][name] = getattr(self, name)()
            harness.write_json(path, self.result)
        shutil.rmtree(self.work)
        print("\nThe figures, with every sample, are in %s" % path)
