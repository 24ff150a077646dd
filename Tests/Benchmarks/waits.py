"""What a run takes when it mostly waits: for the network, for the disk, for events."""

import contextlib
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import time

import contestants
import corpus
import harness
import machine
import peer
import report

ROUND_TRIP = 50  # milliseconds


def measure(bench):
    return {**round_trip(bench), **idle_runs(bench), **single_events(bench)}


@contextlib.contextmanager
def delayed(port):
    """A port that leads to another, with half of the round trip in each direction."""
    process = subprocess.Popen(
        [sys.executable, corpus.HERE + "/delay_proxy.py", str(port), str(ROUND_TRIP / 2)], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE)
    try:
        yield int(process.stdout.readline()), process.pid
    finally:
        process.stdin.close()
        process.wait()


def echo(connection):
    while data := connection.recv(100):
        connection.sendall(data)


def measured_round_trip():
    """Seconds, through a proxy of its own."""
    with delayed(peer.serve_sockets(echo)) as (port, _), socket.create_connection(("127.0.0.1", port)) as connection:
        times = []
        for _ in range(21):
            began = time.monotonic()
            connection.sendall(b"x")
            connection.recv(1)
            times.append(time.monotonic() - began)
    return statistics.median(times)


def round_trip(bench):
    """A topic has at most 100 events on their way, so no client reads more than 100 in a round trip."""
    recorded = corpus.Corpus(bench.programs, bench.work, "opportunity")
    rates = []
    counts = [max(3000, bench.events // 50 // 100 * 100) * factor for factor in (1, 4)]
    with contestants.Service(bench.tools, bench.work, recorded) as service, delayed(service.port) as (port, pid):
        near = service.port
        for turn in range(bench.rounds):
            bench.progress("round trip, round %d" % (turn + 1))
            possible = 100 / measured_round_trip()
            service.port = port
            ours = contestants.PubSubETL("pubsub-etl", bench.programs, service, recorded)
            pair = [ours.sample(bench.work, events, [service.process.pid, pid]) for events in counts]
            service.port = near
            [slope] = report.slopes([pair], counts)
            rates.append(1 / slope["wall"] / possible)
    return {"events/s at 50 ms / 100 per round trip": report.spread(rates)}


def simulated(bench):
    """A simulator, its exporter, and a pipeline that has read everything."""
    work = bench.work + "/waits"
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    topic = corpus.TOPICS["opportunity"]
    simulator = harness.Simulator(bench.programs, work, "--events", "1000", "--topics", topic)
    document = harness.pipeline("waits", [topic])
    document["sinks"][0]["directory"] = work + "/out"
    document["checkpoint"]["directory"] = work + "/state"
    harness.write_json(work + "/pipeline.json", document)
    exporter = harness.Exporter(bench.programs + "/pubsub-etl", work + "/pipeline.json", simulator.environment)
    exporter.call("run")
    return simulator, exporter, topic


def idle_runs(bench):
    """Runs that find no events."""
    simulator, exporter, _ = simulated(bench)
    with simulator:
        samples = []
        for turn in range(4 * bench.rounds):
            bench.progress("idle run %d" % (turn + 1))
            samples.append(machine.run(exporter.command("run"), environment=simulator.environment))
    return {
        "idle run, CPU ms": report.spread(sample.cpu * 1e3 for sample in samples),
        # `quiet` is 1 s in pipelines of proofs.
        "idle run, ms beyond `quiet`": report.spread((sample.wall - 1) * 1e3 for sample in samples),
    }


def synced(path):
    """Seconds that the file system takes to make a small new file durable."""
    began = time.monotonic()
    with open(path, "wb") as file:
        file.write(bytes(1000))
        file.flush()
        os.fsync(file.fileno())
    return time.monotonic() - began


def single_events(bench):
    """From the request that publishes an event on an idle topic until the stored position is after it."""
    simulator, exporter, topic = simulated(bench)
    checkpoint = os.path.dirname(exporter.path) + "/state/waits.checkpoint.json"
    times, disk = [], []
    with simulator:
        process = exporter.spawn("run", "--follow")

        def is_last_stored():
            return simulator.get("stats")["topics"][topic]["last_replay_id"] in harness.read_text(checkpoint)

        simulator.publish(1, topic)
        exporter.wait(process, is_last_stored, "the first event is durable")
        for turn in range(4 * bench.rounds):
            bench.progress("single event %d" % (turn + 1))
            # The topic is idle for longer than events wait for others.
            time.sleep(1.5)
            stored, began = os.stat(checkpoint).st_ino, time.monotonic()
            simulator.publish(1, topic)
            harness.eventually(
                lambda: os.stat(checkpoint).st_ino != stored, "an event is durable", process=process, pause=0.0005)
            times.append(time.monotonic() - began)
            if not is_last_stored():
                sys.exit("a position was stored that is not after the event")
            disk.append(synced(os.path.dirname(exporter.path) + "/synced"))
        process.send_signal(signal.SIGTERM)
        exporter.end(process)
    bench.progress("")
    fsync = statistics.median(disk)
    return {
        "one event until durable, ms": report.spread(each * 1e3 for each in times),
        "the same without one fsync, ms": report.spread((each - fsync) * 1e3 for each in times),
    }
