internal import Cryptography
internal import DurableFiles
internal import JSON

/// Where finished files go. Each is placed under its final name and then listed, once; its content
/// never changes.
///
/// Files in progress are on this machine, and `SegmentStore` keeps them. A crash may come between any
/// two calls: recovery asks what was done and repeats the rest. Names are relative, with `/` between
/// folders.
protocol FinishedFiles {
  /// The place of the list, for messages.
  var listPath: String { get }

  /// Calls `visit` with every line of the list, which is durable on return.
  mutating func readList(visit: Manifest.Visit) throws(FileSinkError)

  /// The size of a placed file; nil if none has the name.
  func byteCount(of name: String) throws(FileSystemError) -> Int?

  /// Whether a file in progress has been placed under the name and only has to be removed.
  ///
  /// - Parameter part: an absolute path.
  func isPlaced(_ part: String, as name: String) throws(FileSystemError) -> Bool

  /// The SHA-256 of a placed file, in hexadecimal.
  func sha256(of name: String, byteCount: Int) throws(FileSystemError) -> String

  /// Gives a complete file its final name, which must not be taken. The file in progress is gone on
  /// return.
  ///
  /// - Parameter part: an absolute path.
  func place(_ part: String, as name: String) throws(FileSystemError)

  /// Makes durable what was placed in a folder.
  func synchronize(_ folder: String) throws(FileSystemError)

  /// Adds the line of a placed file to the list, durable on return.
  ///
  /// - Parameter isFirst: the first line of this run.
  mutating func list(_ line: JSONValue, isFirst: Bool) throws(FileSystemError)
}

/// Finished files in the directory of those in progress, with the list in `_manifest.ndjson`.
struct FinishedDirectory: FinishedFiles {
  private let directory: String
  private let fileSystem: any FileSystem
  private var manifest: Manifest

  /// - Parameter isGuarded: nobody may change the manifest during the run.
  init(_ directory: String, isGuarded: Bool, on fileSystem: any FileSystem) {
    self.directory = directory
    self.fileSystem = fileSystem
    self.manifest = Manifest(directory: directory, fileSystem: fileSystem)
    self.manifest.isGuarded = isGuarded
  }

  private func path(_ name: String) -> String {
    name.isEmpty ? self.directory : "\(self.directory)/\(name)"
  }

  var listPath: String { self.manifest.path }

  mutating func readList(visit: Manifest.Visit) throws(FileSinkError) {
    try self.manifest.read(visit: visit)
  }

  func byteCount(of name: String) throws(FileSystemError) -> Int? {
    try self.fileSystem.size(of: self.path(name))
  }

  func isPlaced(_ part: String, as name: String) throws(FileSystemError) -> Bool {
    try self.fileSystem.isSameFile(part, self.path(name))
  }

  func sha256(of name: String, byteCount: Int) throws(FileSystemError) -> String {
    try self.fileSystem.hash(of: self.path(name), byteCount: byteCount).snapshot().hex
  }

  func place(_ part: String, as name: String) throws(FileSystemError) {
    try self.fileSystem.move(part, to: self.path(name))
  }

  func synchronize(_ folder: String) throws(FileSystemError) {
    try self.fileSystem.synchronizeDirectory(self.path(folder))
  }

  mutating func list(_ line: JSONValue, isFirst: Bool) throws(FileSystemError) {
    try self.manifest.append(line, isFirst: isFirst)
  }
}

extension FileSystem {
  /// The hash of the first bytes of a file.
  func hash(of path: String, byteCount: Int) throws(FileSystemError) -> SHA256 {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 17, alignment: 16)
    defer { buffer.deallocate() }
    let file = try OpenFile(path, [], on: self)
    var hash = SHA256()
    var offset = 0
    while offset < byteCount {
      let part = UnsafeMutableRawBufferPointer(
        rebasing: buffer[..<min(buffer.count, byteCount - offset)])
      let count = try file.read(into: part, at: offset)
      if count == 0 { break }
      hash.update(UnsafeRawBufferPointer(rebasing: part[..<count]))
      offset += count
    }
    return hash
  }
}
