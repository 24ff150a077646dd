"""Turns samples into figures, and figures into a table."""

import dataclasses
import statistics


def spread(values):
    """Median, least and most."""
    values = list(values)
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def slopes(pairs, counts):
    """What an additional event costs, of each round: a pair of a short and a long run."""
    more = counts[1] - counts[0]
    return [
        {name: (getattr(long, name) - getattr(short, name)) / more
         for name in ("wall", "cpu", "server", "raw", "compressed", "voluntary", "involuntary")}
        for short, long in pairs]


def row(pairs, counts):
    """The figures of a contestant."""
    found = slopes(pairs, counts)
    samples = [sample for pair in pairs for sample in pair]
    return {
        "events": counts,
        "events_per_second": spread(1 / each["wall"] for each in found),
        "cpu_us": spread(each["cpu"] * 1e6 for each in found),
        "server_cpu_us": spread(each["server"] * 1e6 for each in found),
        "raw_bytes": statistics.median(each["raw"] for each in found),
        "compressed_bytes": statistics.median(each["compressed"] for each in found),
        "largest_file": max(sample.compressed for sample in samples),
        "switches_per_response": {
            kind: statistics.median(each[kind] * 100 for each in found) for kind in ("voluntary", "involuntary")},
        "peak_mib": max(sample.peak_mib for sample in samples),
        "others": max(sample.others for sample in samples),
        "samples": [[dataclasses.asdict(sample) for sample in pair] for pair in pairs],
        "slopes": found,
    }


def ratio(one, other, key):
    """Of two contestants round by round, because a machine is faster in one minute than in the next."""
    return spread(mine[key] / theirs[key] for mine, theirs in zip(one["slopes"], other["slopes"]))


def number(value, digits=None):
    if digits is None:
        digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return "{:,.{}f}".format(value, digits)


def between(values, digits=None):
    """Where a short run has taken longer than the long one, the slope says nothing."""
    if values["min"] <= 0:
        return "disturbed"
    return "%s (%s-%s)" % tuple(number(values[name], digits) for name in ("median", "min", "max"))


def table(head, rows):
    """Lines of text, the first column to the left and the others to the right."""
    widths = [max(len(line[column]) for line in [head, *rows]) for column in range(len(head))]

    def line(cells):
        parts = [cell.ljust(width) if index == 0 else cell.rjust(width) for index, (cell, width) in
                 enumerate(zip(cells, widths))]
        return "  ".join(parts).rstrip()

    return "\n".join([line(head), line(["-" * width for width in widths]), *map(line, rows)])


def rows_table(rows, most_others):
    head = ["", "events/s", "CPU us/event", "server us", "raw B", "zstd B", "peak MiB", "switches", "others"]
    body = []
    for name, each in rows.items():
        body.append([
            name, between(each["events_per_second"], digits=0), between(each["cpu_us"]),
            number(each["server_cpu_us"]["median"]), number(each["raw_bytes"], 0), number(each["compressed_bytes"], 1),
            number(each["peak_mib"], 0), number(each["switches_per_response"]["voluntary"], 1),
            others(each, most_others)])
    return table(head, body)


def of_long_runs(row, name):
    """The median of all long runs, start and end included."""
    return statistics.median(long[name] for _, long in row["samples"])


def loads_table(rows, most_others):
    """Rows are what `raw` counts."""
    head = ["", "events/s", "rows/s", "CPU us/event", "server us", "peak MiB", "others"]
    body = []
    for name, each in rows.items():
        rate = statistics.median(slope["raw"] / slope["wall"] for slope in each["slopes"])
        body.append([
            name, between(each["events_per_second"], digits=0), number(rate, 0), between(each["cpu_us"]),
            between(each["server_cpu_us"]), number(each["peak_mib"], 0), others(each, most_others)])
    return table(head, body)


def others(row, most_others):
    """The share of other programs, with a mark if it was too large."""
    return "%.0f %%%s" % (100 * row["others"], " !" if row["others"] >= most_others else "")


def ratios_table(ratios):
    return table(
        ["ratio", "CPU", "events/s"],
        [[name, between(each["cpu"]), between(each["rate"])] for name, each in ratios.items()])
