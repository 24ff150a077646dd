"""What an admin does to the values of picklists, and what the table `_picklist` has to say about them then."""

import json
import ssl
import urllib.request

# Kinds of edits and how often they are chosen.
EDITS = {
    "add_value": 3, "rename_value": 3, "relabel_value": 2, "deactivate_value": 2, "activate_value": 1, "move_value": 2}


def described(environment, entity):
    """Values of all picklists of an object, as its description has them: lists of value, label and whether the value
    is active, by field."""
    request = urllib.request.Request(
        "%s/services/data/v66.0/sobjects/%s/describe" % (environment["SF_INSTANCE_URL"], entity),
        headers={"Authorization": "Bearer " + environment["SF_ACCESS_TOKEN"]})
    context = ssl.create_default_context(cafile=environment["PUBSUB_CA_FILE"])
    with urllib.request.urlopen(request, context=context) as answer:
        return {
            field["name"]: [[choice["value"], choice["label"], choice["active"]] for choice in field["picklistValues"]]
            for field in json.load(answer)["fields"] if field["picklistValues"]}


class Edits:
    """Chooses edits of one picklist, whose values it knows."""

    def __init__(self, values):
        self.values, self.made = [list(value) for value in values], 0

    def choose(self, chance):
        """Makes an edit; returns its name and words, or nothing if it is not possible."""
        kind = chance.choices(list(EDITS), list(EDITS.values()))[0]
        self.made += 1
        active = [value for value in self.values if value[2]]
        inactive = [value for value in self.values if not value[2]]
        if kind == "add_value":
            name = "Choice %d" % self.made
            self.values.append([name, name, True])
            return kind, name
        if kind == "rename_value":
            chosen = chance.choice(self.values)
            former, chosen[0] = chosen[0], "Renamed choice %d" % self.made
            return kind, former, chosen[0]
        if kind == "relabel_value":
            chosen = chance.choice(self.values)
            chosen[1] = "Label \"%d\"" % self.made
            return kind, chosen[0], chosen[1]
        if kind == "move_value":
            chosen = self.values.pop(chance.randrange(len(self.values)))
            place = chance.randint(0, len(self.values))
            self.values.insert(place, chosen)
            return kind, chosen[0], str(place + 1)
        candidates = active if kind == "deactivate_value" and len(active) > 1 else inactive
        if not candidates or kind == "deactivate_value" and candidates is inactive:
            return None
        chosen = chance.choice(candidates)
        chosen[2] = not chosen[2]
        return kind, chosen[0]


def differences(query, schema, edits, absent):
    """What is wrong in `_picklist`, as texts.

    `edits` are those of fields that can be seen, by object and field; fields of `absent` have no rows."""
    rows = {}
    for entity, field, value, label, is_active in query(
        "SELECT entity, field, value, label, is_active FROM %s._picklist"
        " ORDER BY entity, field, position" % schema
    ):
        rows.setdefault((entity, field), []).append([value, label, is_active == "t"])
    found = [
        "_picklist of %s.%s: expected %s, found %s" % (*field, known.values, rows.get(field))
        for field, known in sorted(edits.items()) if rows.get(field) != known.values]
    return found + ["_picklist has values of %s.%s" % field for field in sorted(absent & set(rows))]
