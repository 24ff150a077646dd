"""A client as people write it today: grpcio, generated stubs, fastavro, orjson, zstandard.

    typical_client.py TARGET CERTIFICATE TOPIC EVENTS FILE

Fields without a value are left out. Credit is given back before a response is decoded. It hashes, syncs and resumes
nothing, and leaves the bitmaps of headers as they are.
"""

import io
import os
import queue
import sys

import fastavro
import orjson
import zstandard

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "Fixtures", "simulator"))

import pubsub_peer
from pubsub_peer import pb2


def main():
    target, certificate, topic, events, path = sys.argv[1:]
    events = int(events)
    metadata = [("accesstoken", "benchmark"), ("instanceurl", "benchmark"), ("tenantid", "benchmark")]
    client = pubsub_peer.Client("https://" + target, certificate, metadata)
    requests = queue.SimpleQueue()
    requests.put(pb2.FetchRequest(topic_name=topic, replay_preset=pb2.EARLIEST, num_requested=100))
    more = pb2.FetchRequest(topic_name=topic, num_requested=100)
    read = fastavro.schemaless_reader
    count = 0
    with open(path, "wb") as file, zstandard.ZstdCompressor(level=1).stream_writer(file) as writer:
        call = client.stub.Subscribe(iter(requests.get, None), metadata=metadata)
        for response in call:
            count += len(response.events)
            if count < events:
                requests.put(more)
            lines = []
            for each in response.events:
                event = each.event
                record = read(io.BytesIO(event.payload), client.schema(event.schema_id)[0])
                record = {name: value for name, value in record.items() if value is not None}
                lines.append(orjson.dumps({
                    "replay_id": each.replay_id.hex(), "event_id": event.id, "schema_id": event.schema_id,
                    "event": record}))
            lines.append(b"")
            writer.write(b"\n".join(lines))
            if count >= events:
                break
        requests.put(None)
        call.cancel()


main()
