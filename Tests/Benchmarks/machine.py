"""Runs programs one at a time and measures what they and the rest of the machine use."""

import dataclasses
import os
import subprocess
import sys
import threading
import time

import harness

TICKS = os.sysconf("SC_CLK_TCK")
CORES = os.cpu_count()


def busy_seconds():
    """CPU time that the whole machine has used, other machines on its processors included."""
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, _, _, irq, softirq, steal = map(int, file.readline().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / TICKS


def used_seconds(pid):
    """CPU time of a process, its threads, and its children that have ended."""
    fields = harness.read_text("/proc/%d/stat" % pid).rsplit(")", 1)[1].split()
    return sum(map(int, fields[11:15])) / TICKS


def family(pid):
    """A process and all its descendants."""
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                fields = harness.read_text("/proc/%s/stat" % name).rsplit(")", 1)[1].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            parents.setdefault(int(fields[1]), []).append(int(name))
    found = [pid]
    for each in found:
        found += parents.get(each, [])
    return found


def family_seconds(pids):
    total = 0
    for pid in {each for pid in pids for each in family(pid)}:
        try:
            total += used_seconds(pid)
        except (FileNotFoundError, ProcessLookupError):
            pass
    return total


@dataclasses.dataclass
class Sample:
    """One run, from exec to exit."""

    wall: float
    cpu: float
    server: float
    others: float  # share of the machine that other programs had
    peak_mib: float
    voluntary: int
    involuntary: int
    raw: int = 0
    compressed: int = 0
    files: int = 0


class Machine:
    """How patient we are with other programs."""

    def __init__(self, most_others, attempts, patience):
        self.most_others, self.attempts, self.patience = most_others, attempts, patience

    def wait_for_calm(self):
        """Until the machine is idle, or our patience is over."""
        deadline = time.monotonic() + self.patience
        while time.monotonic() < deadline:
            before, began = busy_seconds(), time.monotonic()
            time.sleep(0.5)
            if (busy_seconds() - before) / (time.monotonic() - began) / CORES < self.most_others:
                return

    def measure(self, run):
        """The first undisturbed sample of `run`, or the least disturbed of all attempts."""
        samples = []
        for _ in range(self.attempts):
            self.wait_for_calm()
            samples.append(run())
            if samples[-1].others < self.most_others:
                break
        return min(samples, key=lambda sample: sample.others)


def run(command, servers=(), environment=None, seconds=3600, output=subprocess.DEVNULL):
    """A sample of a program that has to succeed. The CPU time of `servers`, process IDs, is counted with that of their
    descendants."""
    pipes = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": subprocess.PIPE}
    served, own, busy = family_seconds(servers), time.process_time(), busy_seconds()
    began = time.monotonic()
    process = subprocess.Popen(command, env=environment, **pipes)
    peak = 0
    over = threading.Event()

    def watch():
        nonlocal peak
        while not over.wait(0.02):
            peak = max(peak, harness.peak_kib(process.pid))

    words = []
    reader = threading.Thread(target=lambda: words.append(process.stderr.read()))
    watcher = threading.Thread(target=watch)
    limit = threading.Timer(seconds, process.kill)
    for thread in (reader, watcher, limit):
        thread.start()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.monotonic() - began
    busy = busy_seconds() - busy
    limit.cancel()
    over.set()
    reader.join()
    watcher.join()
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit("%s ended with %d: %s" % (" ".join(command), process.returncode, words[0].decode()[-2000:]))
    served, own = family_seconds(servers) - served, time.process_time() - own
    cpu = usage.ru_utime + usage.ru_stime
    return Sample(
        wall=wall, cpu=cpu, server=served,
        # Ticks are coarse beside the shortest runs.
        others=min(1, max(0, busy - cpu - served - own) / wall / CORES),
        peak_mib=peak / 1024, voluntary=usage.ru_nvcsw, involuntary=usage.ru_nivcsw)
