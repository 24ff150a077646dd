package import DurableFiles
import Glibc

/// A file system in memory that knows what a power cut would leave, and can end the process at any
/// call.
///
/// File data is durable after a synchronisation of the file, a name after one of its directory.
/// `powerCut` keeps a random part of everything else, names in any order. Whatever touches a file
/// under a final name is noted as a violation.
package final class ModelFileSystem: FileSystem, @unchecked Sendable {
  // Not guarded: each test uses its own from one thread.
  private final class Node {
    let isDirectory: Bool
    let inode: UInt64
    var content: [UInt8] = []
    var durable: [UInt8] = []
    var lockHolder: Int32?
    var lockSharers: Set<Int32> = []
    init(_ inode: UInt64, isDirectory: Bool) {
      self.inode = inode
      self.isDirectory = isDirectory
    }
  }

  private struct NameChange {
    var directory: String
    /// A rename changes two names at once.
    var names: [(path: String, node: Node?)]
    /// Two directories that have changed places, with what is in them.
    var exchanged: (String, String)?
  }

  private var names: [String: Node] = [:]
  private var durableNames: [String: Node] = [:]
  private var pending: [NameChange] = []
  private var open: [Int32: (node: Node, path: String, appends: Bool, offset: Int)] = [:]
  private var nextDescriptor: Int32 = 3
  private var nextInode: UInt64 = 2
  /// Calls that this file system does not support.
  package var refused: Set<String> = []
  /// Calls that change something. A kill at another one leaves what a kill at the next of them does.
  package private(set) var callCount = 0
  private static let changingNothing: Set = ["stat", "fstat", "read", "opendir"]
  /// Looks at `files` before each call that changes something.
  package var observer: (() -> Void)?
  /// From this call on nothing works any more: the process was killed.
  package var diesAtCall = Int.max
  /// The call at which it dies, when a write, still takes half of the bytes.
  package var tearsLastWrite = false
  /// Broken promises, in words.
  package private(set) var violations: [String] = []
  /// Every finished file ever seen: its content must stay what it was.
  private var seen: [String: [UInt8]] = [:]

  package init() {
    let root = Node(1, isDirectory: true)
    self.names["/"] = root
    self.durableNames["/"] = root
  }

  // MARK: What tests do to it

  /// Whether somebody has a lock on any file.
  package var hasLock: Bool { self.names.values.contains { $0.lockHolder != nil } }

  /// The process is gone: descriptors and locks with it, what was written stays.
  package func kill() {
    self.open = [:]
    for node in self.names.values {
      node.lockHolder = nil
      node.lockSharers = []
    }
    self.diesAtCall = .max
    self.callCount = 0
  }

  /// Another file system with the same content, where nobody is at work.
  package func copy() -> ModelFileSystem {
    let copy = ModelFileSystem()
    var nodes: [ObjectIdentifier: Node] = [:]
    func copied(_ node: Node) -> Node {
      if let known = nodes[ObjectIdentifier(node)] { return known }
      let own = Node(node.inode, isDirectory: node.isDirectory)
      (own.content, own.durable) = (node.content, node.durable)
      nodes[ObjectIdentifier(node)] = own
      return own
    }
    copy.names = self.names.mapValues(copied)
    copy.durableNames = self.durableNames.mapValues(copied)
    copy.pending = self.pending.map { change in
      var own = change
      own.names = change.names.map { ($0.path, $0.node.map(copied)) }
      return own
    }
    copy.nextInode = self.nextInode
    copy.seen = self.seen
    copy.violations = self.violations
    return copy
  }

  package enum Survival {
    case nothing
    case random(SplitMix)
  }

  /// The machine is gone: what was not synchronised survives or not.
  package func powerCut(_ survival: Survival) {
    var random = SplitMix(seed: 0)
    if case .random(let source) = survival { random = source }
    func survives() -> Bool {
      switch survival {
      case .nothing: false
      case .random: random.next() % 2 == 0
      }
    }
    for change in self.pending where survives() { self.apply(change) }
    self.pending = []
    self.durableNames = self.durableNames.filter { path, _ in
      var parent = path
      while parent != "/" {
        parent = Self.parent(of: parent)
        if self.durableNames[parent] == nil { return false }
      }
      return true
    }
    self.names = self.durableNames
    for node in Set(self.names.values.map(ObjectIdentifier.init)).compactMap({ id in
      self.names.values.first { ObjectIdentifier($0) == id }
    }) where node.content != node.durable {
      if !survives() {
        node.content = node.durable
      } else if survives() {
        // The size reached the disk, the data did not.
        let common = min(node.durable.count, node.content.count)
        node.content =
          Array(node.durable[..<common])
          + [UInt8](repeating: 0, count: node.content.count - common)
      }
      node.durable = node.content
    }
    for (path, content) in self.files where Self.isFinal(path) {
      if let before = self.seen[path], before != content {
        self.violations.append("\(path) was seen and differs after a power cut")
      }
    }
    self.kill()
  }

  package var files: [String: [UInt8]] {
    self.names.filter { !$0.value.isDirectory }.mapValues(\.content)
  }

  package func put(_ path: String, _ content: [UInt8]) {
    let node = self.names[path] ?? self.node(isDirectory: false)
    node.content = content
    node.durable = content
    self.names[path] = node
    self.durableNames[path] = node
  }

  package func delete(_ path: String) {
    self.names[path] = nil
    self.durableNames[path] = nil
  }

  // MARK: Calls

  private func enter(_ call: String, _ path: String) throws(FileSystemError) {
    if !Self.changingNothing.contains(call) {
      self.observer?()
      self.callCount += 1
    }
    guard self.callCount <= self.diesAtCall - 1 || self.diesAtCall == .max else {
      throw FileSystemError(call, path, code: EIO)
    }
    if self.refused.contains(call) { throw FileSystemError(call, path, code: EINVAL) }
  }

  private func node(isDirectory: Bool) -> Node {
    defer { self.nextInode += 1 }
    return Node(self.nextInode, isDirectory: isDirectory)
  }

  package func open(_ path: String, _ flags: OpenFlags) throws(FileSystemError) -> Int32 {
    try self.enter("open", path)
    var node = self.names[path]
    if node == nil, flags.contains(.create) {
      guard self.names[Self.parent(of: path)] != nil else {
        throw FileSystemError("open", path, code: ENOENT)
      }
      let made = self.node(isDirectory: false)
      node = made
      self.change(Self.parent(of: path), [(path, made)])
    } else if flags.contains(.exclusive) {
      throw FileSystemError("open", path, code: EEXIST)
    }
    guard let node else { throw FileSystemError("open", path, code: ENOENT) }
    guard node.isDirectory == flags.contains(.directory) else {
      throw FileSystemError("open", path, code: ENOTDIR)
    }
    if flags.contains(.truncate) {
      self.touch(path)
      node.content = []
    }
    let descriptor = self.nextDescriptor
    self.nextDescriptor += 1
    self.open[descriptor] = (node, path, flags.contains(.append), 0)
    return descriptor
  }

  package func close(_ file: Int32) {
    guard let entry = self.open.removeValue(forKey: file) else { return }
    if entry.node.lockHolder == file { entry.node.lockHolder = nil }
    entry.node.lockSharers.remove(file)
  }

  package func write(
    _ bytes: UnsafeRawBufferPointer, to file: Int32, path: String
  ) throws(FileSystemError) -> Int {
    let isLast = self.callCount + 1 == self.diesAtCall
    do throws(FileSystemError) {
      try self.enter("write", path)
    } catch {
      if isLast, self.tearsLastWrite { self.take(bytes.prefix(bytes.count / 2), file) }
      throw error
    }
    self.take(bytes.prefix(bytes.count), file)
    return bytes.count
  }

  private func take(_ bytes: Slice<UnsafeRawBufferPointer>, _ file: Int32) {
    guard let entry = self.open[file] else { return }
    self.touch(self.name(of: entry.node) ?? entry.path)
    let offset = entry.appends ? entry.node.content.count : entry.offset
    let end = offset + bytes.count
    if entry.node.content.count < end {
      entry.node.content += [UInt8](repeating: 0, count: end - entry.node.content.count)
    }
    entry.node.content.replaceSubrange(offset..<end, with: bytes)
    self.open[file]?.offset = end
  }

  package func read(
    into bytes: UnsafeMutableRawBufferPointer, from file: Int32, at offset: Int, path: String
  ) throws(FileSystemError) -> Int {
    try self.enter("read", path)
    guard let entry = self.open[file] else { throw FileSystemError("read", path, code: EBADF) }
    let count = min(bytes.count, max(0, entry.node.content.count - offset))
    if count > 0 { bytes.copyBytes(from: entry.node.content[offset..<offset + count]) }
    return count
  }

  package func truncate(_ file: Int32, to byteCount: Int, path: String) throws(FileSystemError) {
    try self.enter("ftruncate", path)
    guard let entry = self.open[file] else { throw FileSystemError("ftruncate", path, code: EBADF) }
    guard entry.node.content.count != byteCount else { return }
    self.touch(self.name(of: entry.node) ?? path)
    entry.node.content =
      Array(entry.node.content.prefix(byteCount))
      + [UInt8](repeating: 0, count: max(0, byteCount - entry.node.content.count))
  }

  package func synchronize(_ file: Int32, dataOnly: Bool, path: String) throws(FileSystemError) {
    try self.enter("fsync", path)
    guard let entry = self.open[file] else { throw FileSystemError("fsync", path, code: EBADF) }
    guard entry.node.isDirectory else {
      entry.node.durable = entry.node.content
      return
    }
    for change in self.pending where change.directory == entry.path { self.apply(change) }
    self.pending.removeAll { $0.directory == entry.path }
  }

  package func status(at path: String) throws(FileSystemError) -> FileStatus? {
    try self.enter("stat", path)
    return self.names[path].map(self.status)
  }

  package func status(of file: Int32, path: String) throws(FileSystemError) -> FileStatus {
    try self.enter("fstat", path)
    guard let entry = self.open[file] else { throw FileSystemError("fstat", path, code: EBADF) }
    return self.status(entry.node)
  }

  private func status(_ node: Node) -> FileStatus {
    FileStatus(
      device: 1, inode: node.inode, byteCount: node.content.count,
      linkCount: self.names.values.count { $0 === node })
  }

  package func rename(_ from: String, to: String) throws(FileSystemError) {
    try self.enter("rename", to)
    guard let node = self.names[from] else { throw FileSystemError("rename", from, code: ENOENT) }
    self.touch(from)
    self.touch(to)
    self.change(Self.parent(of: to), [(from, nil), (to, node)])
    self.see(to, node)
  }

  package func renameWithoutReplacing(_ from: String, to: String) throws(FileSystemError) {
    try self.enter("renameat2", to)
    guard let node = self.names[from] else { throw FileSystemError("rename", from, code: ENOENT) }
    guard self.names[to] == nil else { throw FileSystemError("renameat2", to, code: EEXIST) }
    self.touch(from)
    self.change(Self.parent(of: to), [(from, nil), (to, node)])
    self.see(to, node)
  }

  package func exchange(_ path: String, with other: String) throws(FileSystemError) {
    try self.enter("exchange", path)
    for name in [path, other] {
      guard self.names[name] != nil else { throw FileSystemError("renameat2", name, code: ENOENT) }
      if self.pending.contains(where: { Self.isInside($0.directory, name) }) {
        self.violations.append("\(name) was exchanged with names in it that are not durable")
      }
    }
    Self.exchange(&self.names, path, other)
    self.pending.append(
      NameChange(directory: Self.parent(of: path), names: [], exchanged: (path, other)))
    for (name, node) in self.names where Self.isInside(name, path) { self.see(name, node) }
  }

  private static func isInside(_ path: String, _ directory: String) -> Bool {
    path == directory || path.hasPrefix("\(directory)/")
  }

  private static func exchange(_ names: inout [String: Node], _ one: String, _ other: String) {
    let moved = names.map { path, node -> (String, Node) in
      if Self.isInside(path, one) { return (other + path.dropFirst(one.count), node) }
      if Self.isInside(path, other) { return (one + path.dropFirst(other.count), node) }
      return (path, node)
    }
    names = Dictionary(uniqueKeysWithValues: moved)
  }

  package func link(_ from: String, to: String) throws(FileSystemError) {
    try self.enter("link", to)
    guard let node = self.names[from] else { throw FileSystemError("link", from, code: ENOENT) }
    guard self.names[to] == nil else { throw FileSystemError("link", to, code: EEXIST) }
    self.change(Self.parent(of: to), [(to, node)])
    self.see(to, node)
  }

  private func see(_ path: String, _ node: Node) {
    guard Self.isFinal(path) else { return }
    if let before = self.seen[path], before != node.content {
      self.violations.append("\(path) was seen with other content before")
    }
    self.seen[path] = node.content
  }

  package func remove(_ path: String) throws(FileSystemError) {
    try self.enter("unlink", path)
    self.touch(path)
    self.change(Self.parent(of: path), [(path, nil)])
  }

  package func makeDirectory(_ path: String) throws(FileSystemError) -> Bool {
    try self.enter("mkdir", path)
    guard self.names[path] == nil else { return false }
    self.change(Self.parent(of: path), [(path, self.node(isDirectory: true))])
    return true
  }

  /// The model has no permissions.
  package func makeDirectory(
    _ path: String, like other: String
  ) throws(FileSystemError) -> Bool {
    try self.makeDirectory(path)
  }

  package func setPermissions(of path: String, like other: String) throws(FileSystemError) {
    try self.enter("chmod", path)
  }

  package func removeDirectory(_ path: String) throws(FileSystemError) {
    try self.enter("rmdir", path)
    guard self.names[path] != nil else { throw FileSystemError("rmdir", path, code: ENOENT) }
    guard !self.names.keys.contains(where: { $0.hasPrefix("\(path)/") }) else {
      throw FileSystemError("rmdir", path, code: ENOTEMPTY)
    }
    self.change(Self.parent(of: path), [(path, nil)])
  }

  package func list(_ directory: String) throws(FileSystemError) -> [DirectoryEntry]? {
    try self.enter("opendir", directory)
    guard self.names[directory] != nil else { return nil }
    return self.names.filter { $0.key != "/" && Self.parent(of: $0.key) == directory }.map {
      DirectoryEntry(
        name: String($0.key.split(separator: "/").last ?? ""), isDirectory: $0.value.isDirectory)
    }
  }

  package func lock(
    _ file: Int32, shared: Bool, wait: Bool, path: String
  ) throws(FileSystemError) -> Bool {
    try self.enter("flock", path)
    guard let entry = self.open[file] else { throw FileSystemError("flock", path, code: EBADF) }
    if let holder = entry.node.lockHolder, holder != file { return false }
    if shared {
      entry.node.lockSharers.insert(file)
    } else {
      guard entry.node.lockSharers.subtracting([file]).isEmpty else { return false }
      entry.node.lockHolder = file
    }
    return true
  }

  // MARK: Names

  /// Whether readers see it as a finished file: neither it nor a folder of it is hidden.
  package static func isFinal(_ path: String) -> Bool {
    path.hasSuffix(".ndjson.zst") && !path.split(separator: "/").contains { $0.hasPrefix(".") }
  }

  private func touch(_ path: String) {
    if Self.isFinal(path), self.names[path] != nil { self.violations.append("\(path) was changed") }
  }

  /// A file may have its final name and another one: writing through either changes a finished file.
  private func name(of node: Node) -> String? {
    let names = self.names.filter { $0.value === node }.keys
    return names.first(where: Self.isFinal) ?? names.first
  }

  private func change(_ directory: String, _ names: [(path: String, node: Node?)]) {
    for (path, node) in names { self.names[path] = node }
    let isEarly = self.pending.contains { change in
      change.exchanged.map { Self.isInside(directory, $0) || Self.isInside(directory, $1) } ?? false
    }
    if isEarly {
      self.violations.append("\(directory) was changed before its exchange was durable")
    }
    self.pending.append(NameChange(directory: directory, names: names))
  }

  private func apply(_ change: NameChange) {
    for (path, node) in change.names { self.durableNames[path] = node }
    guard let (one, other) = change.exchanged else { return }
    for name in [one, other] where self.durableNames[name] == nil {
      self.violations.append("\(name) was exchanged before its name was durable")
    }
    Self.exchange(&self.durableNames, one, other)
  }
}

/// A small reproducible source of random numbers (Steele, Lea, Flood 2014).
package struct SplitMix: RandomNumberGenerator {
  private var state: UInt64
  package init(seed: UInt64) { self.state = seed }

  package mutating func next() -> UInt64 {
    self.state &+= 0x9E37_79B9_7F4A_7C15
    var word = self.state
    word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
    word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
    return word ^ (word >> 31)
  }
}
