"""A Pub/Sub API client written like the vendor's sample: grpcio, generated stubs, fastavro.

Shares nothing with the Swift code. Stubs are generated at run time from the .proto of the repository.
"""

import importlib
import io
import json
import os
import ssl
import sys
import tempfile
import threading
import urllib.error
import urllib.parse
import urllib.request

import fastavro
import grpc
from grpc_tools import protoc

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))


def load_stubs():
    protos = os.path.join(ROOT, "Sources", "Salesforce", "PubSubMessages", "Protos")
    out = tempfile.mkdtemp(prefix="pubsub-stubs-")
    code = protoc.main([
        "protoc", f"-I{protos}", f"--python_out={out}", f"--grpc_python_out={out}", "pubsub_api.proto"])
    if code != 0:
        raise SystemExit("grpc_tools could not compile pubsub_api.proto")
    sys.path.insert(0, out)
    return importlib.import_module("pubsub_api_pb2"), importlib.import_module("pubsub_api_pb2_grpc")


pb2, pb2_grpc = load_stubs()


def login(url, client_id, client_secret, ca_file=None, grant="client_credentials", path="/services/oauth2/token"):
    """Returns (HTTP status, JSON)."""
    form = urllib.parse.urlencode(
        {"grant_type": grant, "client_id": client_id, "client_secret": client_secret}).encode()
    context = ssl.create_default_context(cafile=ca_file) if url.startswith("https") else None
    request = urllib.request.Request(url + path, data=form)
    try:
        with urllib.request.urlopen(request, context=context, timeout=20) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


class Client:
    def __init__(self, endpoint, ca_file, metadata):
        scheme, rest = endpoint.split("://")
        options = [("grpc.max_receive_message_length", 8 << 20)]
        if scheme == "https":
            with open(ca_file, "rb") as file:
                credentials = grpc.ssl_channel_credentials(file.read())
            self.channel = grpc.secure_channel(rest, credentials, options)
        else:
            self.channel = grpc.insecure_channel(rest, options)
        self.stub = pb2_grpc.PubSubStub(self.channel)
        self.metadata = metadata
        self.schemas = {}

    def get_topic(self, name):
        return self.stub.GetTopic(pb2.TopicRequest(topic_name=name), metadata=self.metadata, timeout=30)

    def get_schema(self, schema_id):
        return self.stub.GetSchema(pb2.SchemaRequest(schema_id=schema_id), metadata=self.metadata, timeout=30)

    def schema(self, schema_id):
        if schema_id not in self.schemas:
            info = self.get_schema(schema_id)
            assert info.schema_id == schema_id
            self.schemas[schema_id] = (fastavro.parse_schema(json.loads(info.schema_json)), json.loads(info.schema_json))
        return self.schemas[schema_id]

    def decode(self, event):
        stream = io.BytesIO(event.payload)
        record = fastavro.schemaless_reader(stream, self.schema(event.schema_id)[0])
        assert stream.tell() == len(event.payload), "bytes are left after the record"
        return record

    def subscribe(self, topic, preset="EARLIEST", replay_id=b"", num_requested=100, stop=None):
        """Yields responses; gives credit back with a semaphore as the vendor's sample does."""
        semaphore = threading.Semaphore(1)
        done = threading.Event()

        def requests():
            first = True
            while True:
                semaphore.acquire()
                if done.is_set():
                    return
                if first:
                    first = False
                    yield pb2.FetchRequest(
                        topic_name=topic, replay_preset=pb2.ReplayPreset.Value(preset),
                        replay_id=replay_id, num_requested=num_requested)
                else:
                    yield pb2.FetchRequest(topic_name=topic, num_requested=num_requested)

        call = self.stub.Subscribe(requests(), metadata=self.metadata)
        try:
            for response in call:
                yield response
                if response.pending_num_requested == 0:
                    semaphore.release()
        finally:
            done.set()
            semaphore.release()
            call.cancel()


def bitmap_names(entries, schema):
    """Names of changed fields, in an implementation of its own."""
    fields = schema["fields"]
    named = {}

    def walk(node):
        if isinstance(node, list):
            for item in node:
                walk(item)
        elif isinstance(node, dict):
            if node.get("type") == "record":
                named[node["name"]] = node
                for field in node["fields"]:
                    walk(field["type"])
            elif isinstance(node.get("type"), (dict, list)):
                walk(node["type"])

    walk(schema)

    def bits(text):
        assert text.startswith("0x") and len(text) % 2 == 0
        number = int(text, 16)
        return [index for index in range(number.bit_length()) if number >> index & 1]

    top, nested = [], []
    for position, entry in enumerate(entries):
        if "-" in entry:
            parent, text = entry.split("-")
            field = fields[int(parent)]
            branches = field["type"] if isinstance(field["type"], list) else [field["type"]]
            record = None
            for branch in branches:
                if isinstance(branch, dict) and branch.get("type") == "record":
                    record = branch
                elif isinstance(branch, str) and branch in named:
                    record = named[branch]
            for index in bits(text):
                nested.append((int(parent), f"{field['name']}.{record['fields'][index]['name']}"))
        else:
            assert position == 0, "the top-level bitmap comes first"
            top += [fields[index]["name"] for index in bits(entry)]
    return top + [name for _, name in nested]


def as_truth(topic, consumer_event, record, schema):
    """The event in the form of the truth file."""
    header = record.pop("ChangeEventHeader", None)

    def value(item):
        if isinstance(item, float) and (item != item or item in (float("inf"), float("-inf"))):
            return "NaN" if item != item else "Infinity" if item > 0 else "-Infinity"
        if isinstance(item, dict):
            return {key: value(child) for key, child in item.items() if child is not None}
        return item

    line = {
        "topic": topic,
        "replay_id": consumer_event.replay_id.hex(),
        "event_id": consumer_event.event.id,
        "schema_id": consumer_event.event.schema_id,
        "header": header,
        "fields": {key: value(item) for key, item in record.items() if item is not None},
    }
    if header is not None:
        for key in ("nulledFields", "diffFields", "changedFields"):
            header[key] = bitmap_names(header[key], schema)
    return line


def environment():
    """What the simulator's --env file exports."""
    names = ["PUBSUB_ENDPOINT", "PUBSUB_CA_FILE", "SF_LOGIN_URL", "SF_CLIENT_ID", "SF_CLIENT_SECRET"]
    return {name: os.environ.get(name, "") for name in names}


def connect(env=None):
    env = env or environment()
    status, token = login(
        env["SF_LOGIN_URL"], env["SF_CLIENT_ID"], env["SF_CLIENT_SECRET"], env["PUBSUB_CA_FILE"] or None)
    assert status == 200, (status, token)
    tenant = token["id"].split("/")[-2]
    metadata = [("accesstoken", token["access_token"]), ("instanceurl", token["instance_url"]), ("tenantid", tenant)]
    return Client(env["PUBSUB_ENDPOINT"], env["PUBSUB_CA_FILE"], metadata)
