"""Proves that `verify` finds what differs between the files of a pipeline and its org, and nothing else.

    verify_files_proof.py --programs DIR --work DIR [--seed S] [--existing N] [--events N] [--differences N]
        [--live-runs N] [--live-rate EVENTS_PER_S] [--visibility-wait SECONDS] [--sinks files|both]
        [--measure]

A simulator whose objects have records from before. When all records are in the files, `verify` has to call the copy
equal, and `verify --checksums` the files. Then differences are planted by writing finished files anew, with their
lines in the manifest: a value in one column, lines that are taken away or invented, deletions that did not happen
and deletions that are taken away; and besides them texts with other line ends and lists in another order, which are
no differences. `verify --full` has to end with 65 and to name exactly the planted records and fields; `verify` those
that concern records. `--repair` is refused. After `pubsub-etl snapshot` only those are left that no read can mend.

Then records change without pause while the exporter follows, with files in progress, and `verify --full` has to
call the copy equal as often as --live-runs says. At last files are cut, changed, removed and put there, and `verify
--checksums` has to name exactly these. A route into two directories copies each object into one of them.

- --sinks both: a postgres sink stands beside the files, and is compared too.
- --measure: instead of differences and changes, time, API calls and memory of `verify` and `verify --full`.

Prints a JSON line for each part; exits 1 on the first thing that is not as it has to be.
"""

import hashlib
import json
import os
import re
import shutil
import sys

import zstandard

import harness
import postgres
import snapshot_proof
import verify_proof

OBJECTS = verify_proof.OBJECTS
TOPICS = verify_proof.TOPICS
say = verify_proof.say


def main():
    arguments = parse()
    work = arguments.work
    for name in ("state", "out"):
        shutil.rmtree(work + "/" + name, ignore_errors=True)
    with harness.Simulator(
        arguments.programs, work, "--events", str(arguments.events), "--seed", str(arguments.seed),
        "--topics", ",".join(TOPICS), "--existing", str(arguments.existing),
        *verify_proof.slow_readers(arguments),
        *snapshot_proof.QUIET.split(),
    ) as simulator:
        if arguments.sinks == "files":
            return FilesProof(arguments, work, simulator).prove()
        with postgres.Cluster() as cluster:
            cluster.make_database("warehouse")
            FilesProof(arguments, work, simulator, cluster.url("warehouse", user=postgres.ROLE)).prove()


def parse():
    return harness.arguments(
        seed=1, existing=1500, events=1500, differences=200, live_runs=3, live_rate=30.0, visibility_wait=1.0,
        sinks=("files", "both"), measure=False)


class Line:
    """A line of a finished file, and where it stands."""

    def __init__(self, file, values):
        self.file, self.values, self.is_removed = file, values, False

    @property
    def record(self):
        return self.values["_record_id"]

    @property
    def is_read(self):
        return self.values["_kind"] == "snapshot"


class Output:
    """The finished files of a directory, to be changed and written anew."""

    def __init__(self, directory):
        self.directory = directory
        with open(directory + "/_manifest.ndjson", encoding="utf-8") as file:
            self.manifest = [json.loads(line) for line in file]
        self.lines = {entry["name"]: self.read(entry["name"]) for entry in self.manifest}
        self.changed = set()

    def read(self, name):
        with open("%s/%s" % (self.directory, name), "rb") as file:
            text = zstandard.ZstdDecompressor().stream_reader(file).read().decode()
        return [Line(name, json.loads(line)) for line in text.split("\n")[:-1]]

    def of(self, entity):
        """The lines of each record, in the order of the stream; those of reads first."""
        records = {}
        names = [entry["name"] for entry in self.manifest if entry["entity"] == entity]
        for name in sorted(names, key=lambda name: name.rsplit("/", 1)[1]):
            for line in self.lines[name]:
                if line.values["_kind"] in ("snapshot", "change", "gap"):
                    records.setdefault(line.record, []).append(line)
        for lines in records.values():
            lines.sort(key=lambda line: not line.is_read)
        return records

    def remove(self, line):
        line.is_removed = True
        self.changed.add(line.file)

    def change(self, line, **values):
        line.values.update(values)
        self.changed.add(line.file)

    def add_after(self, line, values):
        lines = self.lines[line.file]
        lines.insert(lines.index(line) + 1, Line(line.file, values))
        self.changed.add(line.file)

    def write(self):
        for entry in self.manifest:
            name = entry["name"]
            if name not in self.changed:
                continue
            lines = [line.values for line in self.lines[name] if not line.is_removed]
            text = "".join(
                json.dumps(values, ensure_ascii=False, separators=(",", ":")) + "\n" for values in lines).encode()
            # As this program writes them: without content size, the last block may be empty.
            compressor = zstandard.ZstdCompressor(level=1, write_content_size=False)
            compressed = compressor.compress(text)
            with open("%s/%s" % (self.directory, name), "wb") as file:
                file.write(compressed)
            entry.update(
                lines=len(lines), bytes=len(compressed), uncompressed_bytes=len(text),
                sha256=hashlib.sha256(compressed).hexdigest())
        self.write_manifest()
        self.changed = set()

    def write_manifest(self):
        with open(self.directory + "/_manifest.ndjson", "w", encoding="utf-8") as file:
            for entry in self.manifest:
                file.write(json.dumps(entry, separators=(",", ":")) + "\n")


class FilesProof(verify_proof.CopyProof):
    def __init__(self, arguments, work, simulator, url=None):
        super().__init__(arguments, work, simulator)
        self.output = work + "/out"
        # Files of some lines, so that records are in several.
        sinks = [
            {"type": "files", "name": "files", "directory": self.output,
             "rotate": {"max_events": 1000000 if arguments.measure else 400}}]
        if url:
            self.environment["DATABASE_URL"] = url
            sinks.append({"type": "postgres", "name": "warehouse", "url": "${DATABASE_URL}"})
        self.write(*sinks)

    def verify(self, *arguments, code=0):
        """Entries of the files sink, by object."""
        report = json.loads(self.run("verify", "--json", *arguments, allowed=(code,)))
        if report["equal"] != (code == 0):
            sys.exit("exit code %d, and equal is %s" % (code, report["equal"]))
        sinks = {table["sink"] for table in report["tables"]}
        if sinks != ({"files", "warehouse"} if self.arguments.sinks == "both" else {"files"}):
            sys.exit("compared were the sinks %s" % sinks)
        for table in report["tables"]:
            if table["sink"] != "files" and not table["equal"]:
                sys.exit("the other sink is not equal: %s" % table)
        return {table["entity"]: table for table in report["tables"] if table["sink"] == "files"}, report

    def prove(self):
        self.run("run")
        self.age()
        self.run("run")
        if self.arguments.measure:
            return self.measure()
        tables, report = self.verify("--full")
        self.check_whole(tables)
        say("equal", records={name: table["records"] for name, table in tables.items()},
            api_calls=report["api_calls"])
        self.run("verify", "--checksums")
        self.plant_all()
        self.check_repair()
        if self.arguments.live_runs:
            self.check_live()
        self.check_checksums()
        self.check_routed()

    # Differences

    def plant_all(self):
        kept = self.work + "/out.kept"
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(self.output, kept)
        output = Output(self.output)
        planted = {}
        share = self.arguments.differences // len(OBJECTS)
        extra = self.arguments.differences - share * len(OBJECTS)
        for name in OBJECTS:
            planted[name] = self.plant_into(output, name, share + extra)
            extra = 0
        output.write()
        self.run("verify", "--checksums")
        self.check_found(planted)
        self.planted = planted

    def columns(self, name):
        columns = harness.read_json("%s/%s/_columns.json" % (self.output, name))["columns"]
        blind = {"Weighted_Amount__c"}
        return [(column["name"], column["type"]) for column in columns
                if column["name"][0] != "_" and column["name"] not in blind]

    def plant_into(self, output, name, count):
        records = output.of(name)
        found = {"missing": set(), "extra": set(), "not_found": set(), "fields": {}}
        ids = sorted(records)
        self.chance.shuffle(ids)
        ends = {record: self.end_of(records[record]) for record in ids}
        read_only = [record for record in ids if all(line.is_read for line in records[record])]
        updated = [record for record in ids if ends[record] == "UPDATE"]
        # Without an image, what is left of the record would be partial.
        deleted = [record for record in ids if ends[record] == "DELETE" and any(
            line.is_read or line.values["_change_type"] in ("CREATE", "UNDELETE") for line in records[record])]
        used = set()

        def each(share, pool):
            taken = [record for record in pool if record not in used][:max(1, int(count * share))]
            used.update(taken)
            return taken

        for record in each(0.1, read_only):
            for line in records[record]:
                output.remove(line)
            found["missing"].add(record)
        for record in each(0.075, updated):
            last = records[record][-1]
            output.change(last, _change_type="DELETE", _changed_fields=[], _nulled_fields=[], _diff_fields=[])
            found["missing"].add(record)
        for record in each(0.075, deleted):
            output.remove(records[record][-1])
            found["extra"].add(record)
        for number, record in enumerate(each(0.05, read_only)):
            used.discard(record)
            line = records[record][-1]
            invented = self.invented(record, number)
            output.add_after(line, {**line.values, "_record_id": invented})
            found["not_found"].add(invented)
        rest = count - sum(len(found[kind]) for kind in ("missing", "extra", "not_found"))
        columns = self.columns(name)
        for place in range(rest):
            column, kind = columns[place % len(columns)]
            pool = (updated, read_only)[place % 2]
            for record in pool:
                last = records[record][-1]
                if record not in used and (last.is_read or column in last.values["_changed_fields"]):
                    break
            else:
                record = next(record for record in read_only if record not in used)
            used.add(record)
            last = records[record][-1]
            output.change(last, **{column: self.changed(last.values.get(column), kind)})
            found["fields"].setdefault(column, set()).add(record)
        for record in read_only:
            if record not in used:
                for column, kind in columns:
                    self.reform(output, records[record][-1], column)
        return found

    @staticmethod
    def end_of(lines):
        """What the last line of a record says of it; nothing if a read may contain it."""
        return lines[-1].values["_change_type"] if not any(
            line.values["_kind"] == "gap" for line in lines) else ""

    @staticmethod
    def changed(value, kind):
        if kind == "boolean":
            return not value
        if kind in ("int", "long"):
            return 17 if value is None or abs(value) > 1000000 else value + 1
        if kind in ("float", "double"):
            return 17.5 if value is None or abs(value) > 1000000 else value + 1
        if kind.startswith("array"):
            return (value or []) + ["planted"]
        if kind == "date":
            return "2001-02-03" if value != "2001-02-03" else "2001-02-04"
        if kind.startswith("timestamp"):
            return "2001-02-03T00:00:00.000Z" if value != "2001-02-03T00:00:00.000Z" else "2001-02-04T00:00:00.000Z"
        if kind.startswith("time"):
            return "10:00:00.000" if value != "10:00:00.000" else "11:00:00.000"
        return (value or "") + "x"

    @staticmethod
    def reform(output, line, column):
        """Changes the form of a value, but not the value."""
        value = line.values.get(column)
        if isinstance(value, str) and "\n" in value and "\r" not in value:
            output.change(line, **{column: value.replace("\n", "\r\n")})
        elif isinstance(value, list) and len(value) > 1:
            output.change(line, **{column: value[::-1]})

    def check_found(self, planted):
        tables, report = self.verify("--full", code=65)
        total = 0
        for name, wanted in planted.items():
            total += self.check_table(name, tables[name], wanted)
        if total != self.arguments.differences:
            sys.exit("%d differences were planted" % total)
        say("planted", found=total, fields=sum(len(wanted["fields"]) for wanted in planted.values()),
            api_calls=report["api_calls"])
        tables, report = self.verify(code=65)
        for name, wanted in planted.items():
            for kind in ("missing", "extra", "not_found"):
                self.check_same("%s %s" % (name, kind), set(tables[name][kind]), wanted[kind])
            if {field["field"] for field in tables[name]["fields"]} - {"LastModifiedDate"}:
                sys.exit("values were compared: %s" % tables[name]["fields"])
        say("records", api_calls=report["api_calls"])
        tables, _ = self.verify("--sample", "300", "--entity", "Account", code=65)
        found = self.fields(tables["Account"])
        if set(tables) != {"Account"} or tables["Account"]["records"]["sampled"] != 300 or any(
            records - planted["Account"]["fields"].get(field, set()) for field, records in found.items()
        ):
            sys.exit("the sample is wrong: %s" % tables)
        say("sample", found=sum(len(records) for records in found.values()))

    @staticmethod
    def fields(table):
        """Records by column; the report has the paths of fields, of which columns are named."""
        return {field["field"].replace(".", "_"): set(field["records"]) for field in table["fields"]}

    def check_table(self, name, table, wanted):
        total = 0
        for kind in ("missing", "extra", "not_found"):
            self.check_same("%s %s" % (name, kind), set(table[kind]), wanted[kind])
            total += len(wanted[kind])
        fields = self.fields(table)
        self.check_same("%s fields" % name, set(fields), set(wanted["fields"]))
        for field, records in wanted["fields"].items():
            self.check_same("%s.%s" % (name, field), fields[field], records)
            total += len(records)
        return total

    def check_repair(self):
        """Nothing mends single records of files; a snapshot mends what a read can mend."""
        if self.arguments.sinks == "files":
            self.run("verify", "--repair", allowed=(64,))
        self.run("snapshot")
        self.age()
        self.run("run")
        tables, _ = self.verify("--full", code=65)
        for name, wanted in self.planted.items():
            self.check_table(name, tables[name], {**wanted, "missing": set(), "fields": {}})
        say("snapshot", left={name: len(wanted["extra"]) + len(wanted["not_found"])
                              for name, wanted in self.planted.items()})
        self.mend()
        self.verify("--full")

    def mend(self):
        """Puts the files back that were there before the differences."""
        kept = self.work + "/out.kept"
        with open(kept + "/_manifest.ndjson", encoding="utf-8") as file:
            before = {entry["name"]: entry for entry in map(json.loads, file)}
        output = Output(self.output)
        output.manifest = [before.get(entry["name"], entry) for entry in output.manifest]
        for name in before:
            shutil.copyfile("%s/%s" % (kept, name), "%s/%s" % (self.output, name))
        output.write_manifest()

    # Checksums

    def check_checksums(self):
        """Needs no org; names each file."""
        self.run("run")
        environment = self.environment
        self.environment = {**environment, "PUBSUB_ENDPOINT": "https://127.0.0.1:9", "SF_LOGIN_URL": "https://127.0.0.1:9"}
        if json.loads(self.run("verify", "--checksums", "--json"))["equal"] is not True:
            sys.exit("files that are whole are called damaged")
        names = [entry["name"] for entry in Output(self.output).manifest]
        self.chance.shuffle(names)
        cut, flipped, longer, removed = names[:4]
        path = self.output + "/"
        os.truncate(path + cut, os.path.getsize(path + cut) - 1)
        with open(path + flipped, "r+b") as file:
            file.seek(os.path.getsize(path + flipped) // 2)
            byte = file.read(1)
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte[0] ^ 1]))
        with open(path + longer, "ab") as file:
            file.write(b"\n")
        os.remove(path + removed)
        foreign = removed.rsplit("-", 1)[0] + "-999999999999.ndjson.zst"
        shutil.copyfile(path + names[4], path + foreign)
        report = json.loads(self.run("verify", "--checksums", "--json", allowed=(65,)))
        faults = {fault["file"] for sink in report["sinks"] for fault in sink["faults"]}
        self.check_same("files", faults, {cut, flipped, longer, removed, foreign})
        self.run("verify", "--checksums", "--full", allowed=(64,))
        self.environment = environment
        say("checksums", files=len(names), faults=len(faults))

    # A route

    def check_routed(self):
        """A sink has views and a copy of the objects that come to it, and only those are compared there. Later
        runs read no record again."""
        document = harness.pipeline("routed", TOPICS)
        document["source"]["snapshot"] = {"mode": "initial", "visibility_wait": "1s"}
        document["stages"] += [
            {"type": "route", "routes": [{"entity": "Account", "to": ["accounts"]}], "default": ["rest"]}]
        document["sinks"] = [
            {"type": "files", "name": name, "directory": "%s/routed/%s" % (self.work, name)}
            for name in ("accounts", "rest")]
        self.path = self.work + "/routed.json"
        harness.write_json(self.path, document)
        for _ in range(2):
            self.run("run")
        wanted = {name: {entity for entity in OBJECTS if (entity == "Account") == (name == "accounts")}
                  for name in ("accounts", "rest")}
        for sink in json.loads(self.run("status", "--json"))["sinks"]:
            passes = {(each["object"], each["number"]) for each in sink["snapshots"]}
            self.check_same("passes", passes, {(entity, 1) for entity in wanted[sink["name"]]})
        report = json.loads(self.run("verify", "--json", allowed=(0, 75)))
        for name, entities in wanted.items():
            compared = {table["entity"] for table in report["tables"] if table["sink"] == name}
            self.check_same("objects compared in " + name, compared, entities)
            with open("%s/routed/%s/_views.sql" % (self.work, name), encoding="utf-8") as file:
                views = set(re.findall(r'VIEW "(\w+)_now"', file.read()))
            self.check_same("views in " + name, views, entities)
        say("routed", sinks={name: sorted(entities) for name, entities in wanted.items()})


if __name__ == "__main__":
    main()
