"""The programs that benchmarks compare, and the service that they read from."""

import os
import shutil
import subprocess
import sys

import harness
import machine
from check import Check, compare_decoded, compare_lines, expected_complete, expected_content
from corpus import HERE

# Files with a secret would have to be private.
os.environ["BENCH_TOKEN"] = "00DXX0000000001!benchmark"


class Service:
    """service.cc with the events of a corpus. A context manager."""

    def __init__(self, tools, work, corpus):
        self.certificate, key = work + "/certificate.pem", work + "/key.pem"
        if not os.path.exists(key):
            subprocess.run(
                ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                 "-days", "30", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
                 "-keyout", key, "-out", self.certificate],
                check=True, stderr=subprocess.DEVNULL)
        self.process = subprocess.Popen(
            [tools + "/service", corpus.events, corpus.schema, corpus.schema_id, self.certificate, key],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.port = int(self.process.stdout.readline() or sys.exit("the service did not start"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()

    def limit(self, events):
        """From now on, every topic has so many events."""
        self.process.stdin.write(b"%d\n" % events)
        self.process.stdin.flush()
        self.process.stdout.readline()

    def pipeline(self, topics, events, output, state, port=None):
        """A pipeline that reads so many events of each topic."""
        document = harness.pipeline("bench", topics)
        document["source"]["org"] = {
            "endpoint": "https://localhost:%d" % (port or self.port),
            "tls": {"ca_file": self.certificate},
            "auth": {"type": "token", "access_token": "${BENCH_TOKEN}", "instance_url": "https://localhost"},
        }
        document["sinks"] = [{"type": "files", "directory": output}]
        document["checkpoint"]["directory"] = state
        document["run"] = {"until": {"events": events}}
        return document


class Contestant:
    """A program that reads so many events into a new directory. `share` divides the number of events that it reads, so
    that slow programs take about as long as fast ones."""

    share = 1

    def __init__(self, name, check=None):
        self.name, self.check = name, check

    def events(self, count):
        return max(100, count // self.share // 100 * 100)

    def command(self, directory, events):
        raise NotImplementedError

    def files(self, directory):
        return sorted(harness.data_files(directory), key=os.path.basename)

    def sample(self, work, events, servers):
        """One run, checked."""
        directory = work + "/run"
        shutil.rmtree(directory, ignore_errors=True)
        os.makedirs(directory)
        command = self.command(directory, events)
        os.sync()
        sample = machine.run(command, servers)
        files = self.files(directory)
        sample.compressed, sample.files = sum(map(os.path.getsize, files)), len(files)
        sample.raw = self.verify(files, events)
        return sample

    def verify(self, files, events):
        """Compares the files with the truth; returns their uncompressed bytes."""
        return self.check.run(files, events)


class PubSubETL(Contestant):
    """Ours, with the usual lines or with those of `content`."""

    def __init__(self, name, programs, service, corpus, is_content=False):
        self.programs, self.service, self.topic, self.is_content = programs, service, corpus.topic, is_content
        expected = expected_content if is_content else expected_complete
        super().__init__(name, Check(corpus, compare_lines, expected))

    def command(self, directory, events):
        document = self.service.pipeline(self.topic, events, directory + "/out", directory + "/state")
        if self.is_content:
            document["source"]["record_ids"] = "array"
            document["stages"].append({"type": "drop", "columns": ["_topic", "_event_id", "_kind"]})
        harness.write_json(directory + "/pipeline.json", document)
        return [self.programs + "/pubsub-etl", "run", directory + "/pipeline.json"]

    def files(self, directory):
        return super().files(directory + "/out")


class WithMetrics(PubSubETL):
    """Ours, with metrics, whose text is written at the end."""

    def command(self, directory, events):
        return [*super().command(directory, events), "--set", "metrics.textfile=%s/metrics.prom" % directory]


class ManyTopics(PubSubETL):
    """Ours, with that many topics, all of which have the same events. `events` counts those of all topics."""

    def __init__(self, name, programs, service, corpus, count):
        super().__init__(name, programs, service, corpus)
        self.topics = ["/data/T%03d__ChangeEvent" % number for number in range(count)]

    def events(self, count):
        return max(100, count // len(self.topics) // 100 * 100) * len(self.topics)

    def command(self, directory, events):
        each = events // len(self.topics)
        self.service.limit(each)
        document = self.service.pipeline(self.topics, each, directory + "/out", directory + "/state")
        # The number of events that ends a run is that of all topics together, and ends each of them anywhere.
        document["run"] = {"until": "caught_up", "quiet": "1s"}
        harness.write_json(directory + "/pipeline.json", document)
        return [self.programs + "/pubsub-etl", "run", directory + "/pipeline.json"]

    def verify(self, files, events):
        size = 0
        for topic in self.topics:
            own = [path for path in files if "-%s-" % topic.rsplit("/", 1)[1] in os.path.basename(path)]
            size += self.check.run(own, events // len(self.topics), topic)
        return size


class Bound(Contestant):
    """bound.cc, which writes the same lines."""

    def __init__(self, name, tools, service, corpus, is_content=False):
        self.program, self.service, self.corpus = tools + "/bound", service, corpus
        self.mode = "content" if is_content else "promise"
        expected = expected_content if is_content else expected_complete
        super().__init__(name, Check(corpus, compare_lines, expected))

    def command(self, directory, events):
        target = "localhost:%d" % self.service.port
        return [
            self.program, target, self.service.certificate, self.corpus.topic, str(events), self.corpus.schema,
            directory, self.mode]


class Python(Contestant):
    """typical_client.py."""

    share = 10

    def __init__(self, name, service, corpus):
        self.service, self.topic = service, corpus.topic
        super().__init__(name, Check(corpus, compare_decoded))

    def command(self, directory, events):
        target = "localhost:%d" % self.service.port
        return [
            sys.executable, HERE + "/typical_client.py", target, self.service.certificate, self.topic, str(events),
            directory + "/lines.ndjson.zst"]


class Zstd(Contestant):
    """`zstd -1` of the lines that another contestant writes."""

    share = 5

    def __init__(self, name, work, writer):
        self.work, self.writer, self.lines = work, writer, {}
        # Compressed bytes of the writer, by the number of events.
        self.written = {}
        super().__init__(name, writer.check)

    def command(self, directory, events):
        if events not in self.lines:
            self.lines[events] = path = "%s/%d.ndjson" % (self.work, events)
            self.written[events] = self.writer.sample(self.work, events, []).compressed
            with open(path, "wb") as file:
                subprocess.run(
                    ["zstd", "-dcq", *self.writer.files(self.work + "/run")], stdout=file, check=True)
            shutil.rmtree(directory)
            os.makedirs(directory)
        return ["zstd", "-1", "-q", "-f", self.lines[events], "-o", directory + "/lines.ndjson.zst"]
