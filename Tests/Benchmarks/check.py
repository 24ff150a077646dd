"""Compares the output of a benchmarked run with the truth: every line of it.

The service sends the same events again and again with new IDs. The lines of the first time are parsed and compared,
value by value; those of later times have to be the same bytes, with the IDs of their own positions.
"""

import json
import re
import subprocess
import sys

import pubsub_peer
from corpus import EVENTS, event_ids, replay_ids

REPLAY = re.compile(rb'"_?replay_id":"([0-9a-f]{20})"')
EVENT = re.compile(rb'"_?event_id":"([0-9a-f-]{36})"')


def expected_complete(corpus, index):
    """What pubsub-etl writes by default: a line per record."""
    return corpus.lines(index)


def expected_content(corpus, index):
    """The same event on one line, without the columns `_topic`, `_event_id` and `_kind`."""
    lines = corpus.lines(index)
    line = {}
    for name, value in lines[0].items():
        if name == "_record_id":
            line["_record_ids"] = [each[name] for each in lines]
        elif name not in ("_topic", "_event_id", "_kind"):
            line[name] = value
    return [line]


def compare_lines(corpus, index, parsed, expected):
    wanted = expected(corpus, index)
    for line in parsed:
        for name in ("_replay_id", "_event_id"):
            if name in line:
                line[name] = ""
    if [list(line.items()) for line in parsed] != [list(line.items()) for line in wanted]:
        sys.exit("event %d is %s, not %s" % (index, json.dumps(parsed), json.dumps(wanted)))


def compare_decoded(corpus, index, parsed, _):
    """What the Python client writes: the decoded event, with the bitmaps of its header."""
    [line] = parsed
    schema = corpus.expected.schemas.known.setdefault("document", json.loads(corpus.schema_text))
    header = line["event"].pop("ChangeEventHeader", None)
    if header:
        for key in ("nulledFields", "diffFields", "changedFields"):
            header[key] = pubsub_peer.bitmap_names(header[key], schema)
    fields = {
        name: {part: each for part, each in value.items() if each is not None} if isinstance(value, dict) else value
        for name, value in line["event"].items()}
    truth = corpus.truth[index]
    if (header, fields) != (truth["header"], truth["fields"]):
        sys.exit("event %d is %s, not %s" % (index, json.dumps(line), json.dumps(truth)))


class Check:
    """One kind of output."""

    def __init__(self, corpus, compare, expected=None):
        self.corpus, self.compare, self.expected = corpus, compare, expected
        # The number of lines of each event.
        self.count = [1] * EVENTS
        if expected is expected_complete:
            self.count = [len((event["header"] or {}).get("recordIds", "1")) for event in corpus.truth]
        self.templates = []  # of each event its lines, each cut at its IDs

    def learn(self, index, lines):
        self.compare(self.corpus, index, [json.loads(line) for line in lines], self.expected)
        parts = []
        for line in lines:
            replay, event = REPLAY.search(line), EVENT.search(line)
            if event:
                parts.append((line[: replay.start(1)], line[replay.end(1) : event.start(1)], line[event.end(1) :]))
            else:
                parts.append((line[: replay.start(1)], line[replay.end(1) :], None))
        self.templates.append(parts)

    def run(self, files, events, topic=None):
        """Ends with an error unless the files have exactly these events, of another topic if one is named. Returns the
        uncompressed bytes."""
        own = topic and b'"_topic":"%s"' % topic.encode()
        recorded = b'"_topic":"%s"' % self.corpus.topic.encode()
        process = subprocess.Popen(["zstd", "-dcq", *files], stdout=subprocess.PIPE, bufsize=1 << 20)
        read, size = process.stdout.readline, 0
        for first in range(0, events, EVENTS):
            number = min(EVENTS, events - first)
            for index, (replay, event) in enumerate(zip(replay_ids(first, number), event_ids(first, number))):
                lines = [read() for _ in range(self.count[index])]
                if topic:
                    lines = [line.replace(own, recorded, 1) for line in lines]
                if index == len(self.templates):
                    self.learn(index, lines)
                for line, (before, between, after) in zip(lines, self.templates[index]):
                    size += len(line)
                    wanted = before + replay + between if after is None else before + replay + between + event + after
                    if line != wanted:
                        sys.exit("event %d is %r, not %r" % (first + index, line, wanted))
        if read():
            sys.exit("the files have more than %d events" % events)
        if process.wait():
            sys.exit("the files are damaged")
        return size
