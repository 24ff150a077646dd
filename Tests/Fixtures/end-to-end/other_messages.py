"""Messages of other_service.py, encoded and read by hand."""

import io
import uuid


class Encoder:
    """Fields of protobuf messages, in every form that a reader has to accept."""

    def __init__(self, rng, odd):
        self.rng, self.odd = rng, odd

    def maybe(self, chance):
        return self.odd and self.rng.random() < chance

    def varint(self, number, padded=False):
        number &= (1 << 64) - 1
        out = bytearray()
        while number > 127:
            out.append(number & 127 | 128)
            number >>= 7
        out.append(number)
        if padded and len(out) < 5:
            out[-1] |= 128
            out += b"\x80" * (4 - len(out)) + b"\x00"
        return bytes(out)

    def bytes(self, number, value):
        if isinstance(value, str):
            value = value.encode()
        tag = self.varint(number << 3 | 2, self.maybe(0.02))
        return tag + self.varint(len(value), self.maybe(0.05)) + value

    def int(self, number, value):
        return self.varint(number << 3) + self.varint(value, self.maybe(0.1))

    def unknown(self):
        kind = self.rng.randrange(5)
        number = self.rng.choice([15, 16, 1000, 536870911])
        if kind == 0:
            return self.int(number, self.rng.getrandbits(63))
        if kind == 1:
            return self.bytes(number, self.rng.randbytes(self.rng.randrange(200)))
        if kind == 2:
            return self.varint(number << 3 | 5) + self.rng.randbytes(4)
        if kind == 3:
            return self.varint(number << 3 | 1) + self.rng.randbytes(8)
        inner = self.bytes(1, b"in a group") + self.int(2, 7)
        return self.varint(number << 3 | 3) + inner + self.varint(number << 3 | 4)

    def message(self, *parts):
        parts = [p for p in parts if p]
        if self.maybe(0.3):
            parts.append(self.unknown())
        if self.maybe(0.3):
            self.rng.shuffle(parts)
        return b"".join(parts)

    def event(self, event):
        head = self.bytes(1, event["id"]) + self.bytes(2, event["schema"])
        payload = self.bytes(3, event["payload"])
        if self.maybe(0.1):
            head += self.bytes(4, self.bytes(1, "key") + self.bytes(2, b"\x00\xff"))
        if self.maybe(0.1):
            head = self.bytes(2, "overwritten by the last") + head
        if self.maybe(0.1):  # a message that comes twice is merged
            whole = self.bytes(1, head) + self.bytes(1, payload)
        else:
            whole = self.bytes(1, self.message(head, payload))
        return self.message(whole, self.bytes(2, event["replay"]))

    def response(self, events, latest, pending):
        body = b"".join(self.bytes(1, self.event(e)) for e in events)
        credit = self.int(4, pending) if pending or self.maybe(0.5) else b""
        return self.message(body, self.bytes(2, latest), self.bytes(3, str(uuid.uuid4())), credit)


def read(data):
    """Number and value of each field of a message."""
    stream = io.BytesIO(data)

    def varint():
        value = shift = 0
        while True:
            byte = stream.read(1)[0]
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    fields = {}
    while stream.tell() < len(data):
        tag = varint()
        fields[tag >> 3] = varint() if tag & 7 == 0 else stream.read(varint())
    return fields
