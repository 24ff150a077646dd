"""Looks for wrong rows without a mark in a copy at any of its commits.

What the org holds is newer than such a copy. So the events that it has not yet taken are found by its position in the
truth file, and what they may change is left out: their records, or all records of the object after an overflow or
wildcard event. Every other row has to be as the org holds it or to bear a mark: `_stale`, `_partial`, a text in
`_stale_fields`, or, for the table, `missing_ranges`, `waiting_for_repair` or no `complete_through` in
`_freshness`. Changes of the org without any event are not looked for.

Nothing may write to the tables meanwhile; the org may go on changing.
"""

import json

import compare_state
import postgres

# Of events without a record of their own.
HIDING = ("overflow", "wildcard")


def pending(url, truth, schema):
    """By object, the IDs of the records with events that the copy has not taken; None: all records."""
    rows = postgres.query(url, "SELECT topics FROM %s._etl_checkpoint" % schema)
    positions = json.loads(rows[0][0]) if rows else {}
    last = {topic: (position.get("last_event") or {}).get("replay_id") for topic, position in positions.items()}
    found, waiting = {}, {}
    with open(truth, encoding="utf-8") as file:
        for line in file:
            # The last line may be in the middle of being written.
            if not line.endswith("\n"):
                break
            event = json.loads(line)
            topic = event["topic"]
            waiting.setdefault(topic, []).append(event)
            if event["replay_id"] == last.get(topic):
                waiting[topic] = []
    for event in (event for events in waiting.values() for event in events):
        entity = event["entity"]
        if event["kind"] in HIDING:
            found[entity] = None
        elif found.setdefault(entity, set()) is not None and event["header"]:
            found[entity].update(event["header"]["recordIds"])
    return found


class Unmarked(compare_state.Comparison):
    """The comparison at one moment.

    - pending: as the function of this name returns it; read after the state file was written."""

    def __init__(self, url, state, objects, schema, pending, **options):
        super().__init__(url, state, objects, schema, is_repaired=True, **options)
        self.pending = pending
        sql = "SELECT entity, %s FROM %s._freshness WHERE table_name = lower(entity)"
        told = "missing_ranges > 0, complete_through IS NOT NULL, waiting_for_repair > 0"
        self.marks = {entity: tuple(mark == "t" for mark in marks)
                      for entity, *marks in postgres.query(url, sql % (told, schema))}

    def compare(self, entity):
        is_missing, _, _ = self.marks.get(entity, (True, False, False))
        if is_missing or self.pending.get(entity, ()) is None:
            self.counts["objects_marked"] += 1
            return
        super().compare(entity)

    def check_columns(self, entity, data):
        fields = {name for line in self.records[entity].values() for name in line["cells"]}
        return {name for name in data if name not in fields}

    def is_awaited(self, entity, record):
        _, is_copied, is_waiting = self.marks[entity]
        return is_copied and not is_waiting and self.is_settled(entity, record) and self.may_read(record)

    def is_settled(self, entity, record):
        return record not in self.pending.get(entity, ())

    def compare_row(self, entity, record, marks, values, data, unknown):
        if not self.is_settled(entity, record):
            self.counts["pending"] += 1
        elif marks["_stale"] or marks["_partial"]:
            self.counts["marked"] += 1
        else:
            super().compare_row(entity, record, marks, values, data, unknown)

    def check_stale_field(self, entity, record, name, value):
        self.counts["marked_texts"] += 1
