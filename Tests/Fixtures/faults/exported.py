"""Checks that exported files hold the simulator's truth, and that what lies beside them agrees."""

import glob
import hashlib
import io
import json
import os
import subprocess
import sys

import zstandard

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "end-to-end"))
import compare_truth


class Difference(Exception):
    pass


class Truth:
    """Rows that the topics have to give; built once, read by many threads."""

    def __init__(self, path, topics):
        expected = compare_truth.Expected(compare_truth.Schemas())
        self.rows = {}
        with open(path, encoding="utf-8") as file:
            for number, text in enumerate(file):
                event = json.loads(text)
                if event["topic"] not in topics:
                    continue
                for line in expected.lines(event):
                    self.rows[compare_truth.key_of(line)] = (compare_truth.digest(line), number)

    def check(self, output):
        """Every row once, with the right values, in order."""
        seen, last = set(), {}
        for name in finished_files(output):
            with open(name, "rb") as raw:
                reader = zstandard.ZstdDecompressor().stream_reader(raw)
                for text in io.TextIOWrapper(reader, encoding="utf-8", newline="\n"):
                    line = json.loads(text)
                    key = compare_truth.key_of(line)
                    if key not in self.rows:
                        raise Difference("not in the truth: %s: %s" % (name, text[:300]))
                    if key in seen:
                        raise Difference("twice: %s: %s" % (name, text[:300]))
                    seen.add(key)
                    digest, number = self.rows[key]
                    if compare_truth.digest(line) != digest:
                        raise Difference("other values: %s: %s" % (name, text[:300]))
                    place = (os.path.dirname(name), line["_topic"])
                    if number < last.get(place, -1):
                        raise Difference("out of order: %s: %s" % (name, text[:300]))
                    last[place] = number
        if len(seen) != len(self.rows):
            raise Difference("%d of %d rows are missing" % (len(self.rows) - len(seen), len(self.rows)))


def finished_files(output):
    # A leading dot, which glob leaves out, marks a file in progress.
    return sorted(glob.glob(output + "/**/*.ndjson.zst", recursive=True))


def whole_files(output):
    """SHA-256 by name of what readers see; all of it has to be whole at any moment."""
    names = finished_files(output)
    if names:
        tested = subprocess.run(["zstd", "-tq"] + names, stderr=subprocess.PIPE)
        if tested.returncode:
            raise Difference("torn: " + tested.stderr.decode())
    hashes = {}
    for name in names:
        with open(name, "rb") as file:
            hashes[name] = hashlib.sha256(file.read()).hexdigest()
    return hashes


def check_surroundings(output, state, before):
    """After a run that ended with 0: manifest, checkpoint, nothing in progress, nothing changed."""
    hashes = whole_files(output)
    for name, digest in before.items():
        if hashes.get(name) != digest:
            raise Difference("changed or removed after it was visible: " + name)
    listed = set()
    with open(output + "/_manifest.ndjson", encoding="utf-8") as file:
        for text in file:
            line = json.loads(text)
            name = output + "/" + line["name"]
            if name in listed:
                raise Difference("twice in the manifest: " + name)
            listed.add(name)
            if name not in hashes:
                raise Difference("in the manifest but not there: " + name)
            if (os.path.getsize(name), hashes[name]) != (line["bytes"], line["sha256"]):
                raise Difference("not as the manifest says: " + name)
    if listed != set(hashes):
        raise Difference("not in the manifest: %s" % sorted(set(hashes) - listed))
    parts = glob.glob(output + "/**/.*.part", recursive=True)
    if parts:
        raise Difference("left in progress: %s" % parts)
    for name in glob.glob(state + "/*.checkpoint.json"):
        with open(name, encoding="utf-8") as file:
            json.load(file)
    for name in glob.glob(output + "/*/_columns.json"):
        with open(name, encoding="utf-8") as file:
            json.load(file)
