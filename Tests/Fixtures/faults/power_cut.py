"""What a disk may hold after the power was cut, from the journal of `fault_shim.c`.

Durable is the data of a file up to its last fsync, and the names in a directory up to the
directory's last fsync. Of the rest anything may have arrived: nothing, all, a beginning (the last
write in part), or some of it in any order, with zeros where data has not arrived. A rename is atomic.
"""

import os
import shutil


def read_journal(path):
    """(kind, descriptor, number, result, bytes) of every call; see fault_shim.c."""
    if not os.path.exists(path):
        return []
    with open(path, "rb") as file:
        data = file.read()
    calls, at = [], 0
    while at < len(data):
        end = data.index(b"\n", at)
        kind, descriptor, number, result, length = data[at:end].split()
        at = end + 1 + int(length)
        calls.append((kind.decode(), int(descriptor), int(number), int(result), data[end + 1 : at]))
    return calls


def write_at(data, offset, piece):
    data.extend(bytes(max(0, offset - len(data))))
    data[offset : offset + len(piece)] = piece


class Inode:
    def __init__(self, data=b""):
        self.live = bytearray(data)
        self.durable = bytes(data)
        self.pending = []

    def apply(self, data, operation):
        kind, offset, piece = operation
        if kind == "W":
            write_at(data, offset, piece)
        elif offset <= len(data):
            del data[offset:]
        else:
            data.extend(bytes(offset - len(data)))

    def change(self, operation):
        self.apply(self.live, operation)
        self.pending.append(operation)

    def synchronize(self):
        self.durable, self.pending = bytes(self.live), []

    def lose(self):
        """A failed fsync: the kernel drops what it could not write, later fsyncs say nothing of it."""
        self.live, self.pending = bytearray(self.durable), []

    def after_cut(self, chance):
        data = bytearray(self.durable)
        way = chance.choice(("nothing", "all", "beginning", "some"))
        if way == "beginning":
            count = chance.randrange(len(self.pending) + 1)
            for operation in self.pending[:count]:
                self.apply(data, operation)
            if count < len(self.pending):
                kind, offset, piece = self.pending[count]
                if kind == "W":
                    write_at(data, offset, piece[: chance.randrange(len(piece) + 1)])
        elif way != "nothing":
            for kind, offset, piece in self.pending:
                if way == "some" and kind == "W":
                    arrived = chance.random()
                    if arrived < 0.3:
                        continue
                    if arrived < 0.6:
                        piece = bytes(len(piece))
                elif way == "some" and chance.random() < 0.5:
                    continue
                self.apply(data, (kind, offset, piece))
        return bytes(data)


class Directory:
    def __init__(self):
        self.live, self.durable, self.pending = {}, {}, []

    @staticmethod
    def apply(names, operation):
        kind, name, other, node = operation
        if kind == "add":
            names[name] = node
        elif kind == "remove":
            if names.get(name) is node:
                del names[name]
        else:
            if names.get(name) is node:
                del names[name]
            names[other] = node

    def change(self, *operation):
        self.apply(self.live, operation)
        self.pending.append(operation)

    def synchronize(self):
        self.durable, self.pending = dict(self.live), []

    def after_cut(self, chance):
        names = dict(self.durable)
        way = chance.choice(("nothing", "all", "beginning", "some"))
        if way == "beginning":
            kept = self.pending[: chance.randrange(len(self.pending) + 1)]
        elif way == "some":
            kept = [operation for operation in self.pending if chance.random() < 0.5]
        else:
            kept = self.pending if way == "all" else []
        for operation in kept:
            self.apply(names, operation)
        return names


class Disk:
    """The tree below `root` as it is now, all of it durable; then what a journal did to it."""

    def __init__(self, root):
        self.root = root
        self.top = self.load(root)
        self.open = {}

    def load(self, path):
        if not os.path.isdir(path):
            with open(path, "rb") as file:
                return Inode(file.read())
        directory = Directory()
        for name in os.listdir(path):
            directory.live[name] = self.load(path + "/" + name)
        directory.synchronize()
        return directory

    def find(self, path):
        """(directory, name) of a path."""
        parts = [part for part in path[len(self.root) :].split("/") if part]
        directory = self.top
        for part in parts[:-1]:
            directory = directory.live[part]
        return directory, parts[-1] if parts else ""

    def node(self, path):
        directory, name = self.find(path)
        return directory.live.get(name) if name else directory

    def replay(self, calls, synchronization_loses=False):
        for kind, descriptor, number, result, content in calls:
            if kind == "S" and result < 0 and synchronization_loses:
                node = self.open.get(descriptor)
                if isinstance(node, Inode):
                    node.lose()
            if result < 0 or kind in "rNX":
                continue
            if kind in "Oo":
                path = content.decode()
                node = self.node(path)
                if node is None:
                    node = Inode()
                    directory, name = self.find(path)
                    directory.change("add", name, None, node)
                if number and node.live:
                    node.change(("T", 0, b""))
                if descriptor >= 0:
                    self.open[descriptor] = node
            elif kind == "W":
                self.open[descriptor].change(("W", number, content))
            elif kind == "T":
                self.open[descriptor].change(("T", number, b""))
            elif kind == "S":
                self.open[descriptor].synchronize()
            elif kind == "M":
                directory, name = self.find(content.decode())
                directory.change("add", name, None, Directory())
            elif kind == "U":
                directory, name = self.find(content.decode())
                directory.change("remove", name, None, directory.live[name])
            elif kind == "R":
                old, new = (part.decode() for part in content.split(b"\0"))
                (directory, name), (target, other) = self.find(old), self.find(new)
                # A rename between directories is two names to be made durable: none is expected.
                assert directory is target, "rename between directories: %s" % new
                directory.change("move", name, other, directory.live[name])
            else:
                raise AssertionError("unknown call " + kind)

    def difference(self, node=None, path=None):
        """The first path where the model and the real tree differ: the journal would be incomplete."""
        node, path = node or self.top, path or self.root
        if isinstance(node, Inode):
            with open(path, "rb") as file:
                return None if file.read() == bytes(node.live) else path
        if set(os.listdir(path)) != set(node.live):
            return "%s: %s, not %s" % (path, sorted(os.listdir(path)), sorted(node.live))
        for name, child in sorted(node.live.items()):
            found = self.difference(child, path + "/" + name)
            if found:
                return found
        return None

    def cut(self, chance):
        """Replaces the real tree by one that a cut of the power may leave."""
        shutil.rmtree(self.root)
        self.store(self.top, self.root, chance)

    def store(self, node, path, chance):
        if isinstance(node, Inode):
            with open(path, "wb") as file:
                file.write(node.after_cut(chance) if node.pending else node.durable)
            return
        os.mkdir(path)
        for name, child in sorted(node.after_cut(chance).items()):
            self.store(child, path + "/" + name, chance)
