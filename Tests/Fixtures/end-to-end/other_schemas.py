"""Schemas of other_service.py: three versions of three objects and of a platform event."""

import base64
import hashlib
import json

import fastavro
import fastavro.schema

TYPES = ["CREATE", "UPDATE", "DELETE", "UNDELETE", "GAP_CREATE", "GAP_UPDATE", "GAP_DELETE"]
TYPES += ["GAP_UNDELETE", "GAP_OVERFLOW"]

def field(name, avro, doc=None):
    whole = {"name": name, "type": ["null"] + (avro if isinstance(avro, list) else [avro])}
    whole["default"] = None
    if doc:
        whole["doc"] = doc
    return whole


def strings():
    return {"type": "array", "items": "string"}


def header(symbols):
    fields = [
        ("entityName", "string"),
        ("recordIds", strings()),
        ("changeType", {"type": "enum", "name": "ChangeType", "symbols": symbols}),
        ("changeOrigin", "string"),
        ("transactionKey", "string"),
        ("sequenceNumber", "int"),
        ("commitTimestamp", "long"),
        ("commitNumber", "long"),
        ("commitUser", "string"),
        ("nulledFields", strings()),
        ("diffFields", strings()),
        ("changedFields", strings()),
    ]
    record = {"type": "record", "name": "ChangeEventHeader"}
    record["fields"] = [{"name": n, "type": t} for n, t in fields]
    return {"name": "ChangeEventHeader", "type": record, "doc": "Data:ComplexValueType"}


def record(name, *children):
    whole = {"type": "record", "name": name}
    whole["fields"] = [field(n, t) for n, t in children]
    return whole


def address(extra):
    names = ["Street", "City", "State", "PostalCode", "Country", "StateCode", "CountryCode"]
    children = [(n, "string") for n in names] + [("Latitude", "double"), ("Longitude", "double")]
    children += [("Xyz", "string")] if extra else []
    return record("Address", *children, ("GeocodeAccuracy", "string"))


SCALARS = [
    ("string", "Data:Text:00NgL00000vXMFS"),
    ("string", "Data:StringPlusClob"),
    ("string", "Data:DynamicEnum"),
    ("string", "ForeignKey:EntityId"),
    ("double", "Data:Currency"),
    ("double", "Data:Percent"),
    ("double", "Data:Double:00NgL00000vXNVG"),
    ("boolean", "Data:Boolean"),
    ("int", "Data:Integer"),
    ("long", "Data:DateTime"),
    ("long", "Data:DateOnly"),
    ("long", "Data:TimeOnly"),
]


def contact(rng, version):
    name = record("PersonName", *((n, "string") for n in ["Salutation", "FirstName", "LastName"]))
    fields = [
        header(TYPES + ["SNAPSHOT"]),
        field("AccountId", "string", "ForeignKey:EntityId"),
        field("IsPersonAccount", "boolean", "Data:Boolean"),
        field("Name", name, "Data:PersonName"),
        field("OtherAddress", address(False), "Data:Address"),
        field("MailingAddress", "Address", "Data:Address"),
        field("Phone", "string", "Data:Phone"),
        field("Birthdate", "long", "Data:DateOnly"),
        field("CreatedDate", "long", "CreatedDate:DateTime"),
        field("LastModifiedDate", "long", "Data:DateTime"),
        field("BuyerAttributes", "string", "Data:MultiEnum"),
    ]
    fields += [field("Later%d__c" % i, *rng.choice(SCALARS)) for i in range(version * 3)]
    return change("ContactChangeEvent", fields)


def account(rng, version):
    names = ["Salutation", "FirstName", "LastName", "MiddleName", "InformalName", "Suffix"]
    name = record("Switchable_PersonName", *((n, "string") for n in names))
    fields = [
        header(TYPES),
        field("Name", ["string", name], "Data:Switchable_PersonName"),
        field("BillingAddress", address(True), "Data:Address"),
        field("ShippingAddress", "Address", "Data:Address"),
        field("AnnualRevenue", "double", "Data:Currency"),
        field("NumberOfEmployees", "int", "Data:Integer"),
        field("LastModifiedDate", "long", "Data:DateTime"),
    ]
    fields += [field("Custom%d__c" % i, *rng.choice(SCALARS)) for i in range(60 + version)]
    return change("AccountChangeEvent", fields)


def wide(rng, version):
    where = record("Location", ("Latitude", "double"), ("Longitude", "double"))
    fields = [header(TYPES + ["SNAPSHOT", "GAP_RENAME"])]
    fields += [field("Where__c", where, "Data:Location:00N000000000001")]
    fields += [field("Also__c", "Location", "Data:Location:00N000000000002")]
    fields += [field("F%03d__c" % i, *rng.choice(SCALARS)) for i in range(400 + version * 8)]
    return change("ns__Wide__ChangeEvent", fields)


def change(name, fields):
    whole = {"type": "record", "name": name, "namespace": "com.sforce.eventbus"}
    whole["fields"] = fields
    return whole


def order(rng, version):
    fields = [
        {"name": "CreatedDate", "type": "long", "doc": "CreatedDate:DateTime"},
        {"name": "CreatedById", "type": "string", "doc": "CreatedBy:EntityId"},
    ]
    fields += [field("F%d__c" % i, *rng.choice(SCALARS)) for i in range(3 + version)]
    return change("Order_Event__e", fields)


class Schema:
    def __init__(self, document, rng):
        self.document = document
        spaces = rng.choice([None, 1])  # the service's are on one line; a reader must not care
        self.text = json.dumps(document, indent=spaces)
        canonical = fastavro.schema.to_parsing_canonical_form(document)
        digest = hashlib.md5(canonical.encode()).digest()
        self.id = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        self.parsed = fastavro.parse_schema(json.loads(self.text))
        self.records = {}
        for each in document["fields"]:
            for branch in each["type"] if isinstance(each["type"], list) else []:
                if isinstance(branch, dict):
                    self.records[branch["name"]] = branch
        self.is_change = document["fields"][0]["name"] == "ChangeEventHeader"

    def shape(self, index):
        """Scalar type or nil, children or nil, and the Salesforce type of a field."""
        each = self.document["fields"][index]
        branches = each["type"] if isinstance(each["type"], list) else [each["type"]]
        scalar = children = None
        for branch in branches:
            name = branch["name"] if isinstance(branch, dict) else branch
            if name in self.records:
                children = [(c["name"], c["type"][1]) for c in self.records[name]["fields"]]
            elif name != "null":
                scalar = name
        return scalar, children, each.get("doc", ":").split(":")[1]
