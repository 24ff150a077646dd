"""Reads files for the Metadata API with Python's own parser; prints what they hold as JSON, by path.

    read_metadata.py DIRECTORY
"""

import json
import os
import sys
import xml.etree.ElementTree

NAMESPACE = "{http://soap.sforce.com/2006/04/metadata}"


def value(element):
    if len(element) == 0:
        return element.text or ""
    members = {}
    for child in element:
        assert child.tag.startswith(NAMESPACE), child.tag
        members.setdefault(child.tag[len(NAMESPACE):], []).append(value(child))
    return members


found = {}
for directory, _, names in os.walk(sys.argv[1]):
    for name in names:
        path = os.path.join(directory, name)
        if name.endswith(".xml"):
            root = xml.etree.ElementTree.parse(path).getroot()
            found[os.path.relpath(path, sys.argv[1])] = {root.tag[len(NAMESPACE):]: [value(root)]}
        else:
            with open(path, encoding="utf-8") as file:
                found[os.path.relpath(path, sys.argv[1])] = json.load(file)
print(json.dumps(found))
