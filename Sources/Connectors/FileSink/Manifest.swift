internal import CSystem
internal import DurableFiles
internal import Glibc
internal import JSON
internal import Pipeline

/// `_manifest.ndjson`: one line per finished file of the directory, appended when it has its name.
///
/// Several pipelines may share a directory, so every access holds the file's lock, briefly. A line
/// that a crash truncated is removed; its writer writes it again on recovery.
struct Manifest {
  static let fileName = "_manifest.ndjson"

  /// Receives a line without its line end, and the name in it.
  typealias Visit = (
    _ line: UnsafeBufferPointer<UInt8>, _ name: UnsafeBufferPointer<UInt8>
  ) -> Void

  /// Absolute.
  let path: String
  private let directory: String
  private let fileSystem: any FileSystem
  /// Nobody may shorten, replace or remove the manifest during the run, which is the evidence for
  /// the files.
  var isGuarded = false
  /// The manifest as this run last saw it.
  private var seen: FileStatus?

  init(directory: String, fileSystem: any FileSystem) {
    self.directory = directory
    self.path = "\(directory)/\(Self.fileName)"
    self.fileSystem = fileSystem
  }

  /// Appends a line, durable on return.
  ///
  /// - Parameter isFirst: the first line of this run. Then the file's name is made durable, even if
  ///   the file exists, because a run may have created it and been killed before making the name
  ///   durable.
  mutating func append(_ line: JSONValue, isFirst: Bool) throws(FileSystemError) {
    let file = try OpenFile(self.path, [.write, .create, .append], on: self.fileSystem)
    _ = try file.lock(wait: true)
    if self.isGuarded, let seen { try file.checkContinues(seen) }
    try self.removeUnendedLine(file)
    try file.write(Array((line.text(.compact) + "\n").utf8))
    try file.synchronize()
    self.seen = try file.status()
    if isFirst { try self.fileSystem.synchronizeDirectory(self.directory) }
  }

  /// Calls `visit` with every line, without its line end, and removes a torn last line. Lines are
  /// durable on return, because a killed run may have left one that is not.
  ///
  /// - Throws: `FileSinkError.inconsistent` for a line before the last that is not a JSON object
  ///   with a name; errors of the file system.
  mutating func read(visit: Visit) throws(FileSinkError) {
    do throws(FileSystemError) {
      guard let size = try self.fileSystem.size(of: self.path), size > 0 else { return }
    } catch {
      throw FileSinkError(error)
    }
    do {
      let file = try OpenFile(self.path, [.write], on: self.fileSystem)
      _ = try file.lock(wait: true)
      let validByteCount = try self.scan(file, visit: visit)
      if try self.fileSystem.size(of: self.path) != validByteCount {
        try file.truncate(to: validByteCount)
      }
      try file.synchronize()
      self.seen = try file.status()
      try self.fileSystem.synchronizeDirectory(self.directory)
    } catch let error as FileSystemError {
      throw FileSinkError(error)
    } catch let error as FileSinkError {
      throw error
    } catch {
      preconditionFailure("neither the file system's nor this module's: \(error)")
    }
  }

  /// Calls `visit` with every complete line. Takes no lock and writes nothing, so it can be used
  /// during a run, which may be writing the last line.
  ///
  /// - Parameter limit: the bytes to read, up to the end of a line.
  /// - Returns: the bytes up to the end of the last complete line.
  @discardableResult
  func peek(upTo limit: Int = .max, visit: Visit) throws(FileSinkError) -> Int {
    do {
      guard let size = try self.fileSystem.size(of: self.path), size > 0 else { return 0 }
      return try self.scan(
        OpenFile(self.path, [], on: self.fileSystem), upTo: limit, visit: visit)
    } catch let error as FileSystemError {
      throw FileSinkError(error)
    } catch let error as FileSinkError {
      throw error
    } catch {
      preconditionFailure("neither the file system's nor this module's: \(error)")
    }
  }

  /// Returns the bytes up to the end of the last complete line.
  ///
  /// A line is visited when the next one is found, so that the last one, which may be truncated,
  /// can be checked first.
  private func scan(
    _ file: borrowing OpenFile, upTo limit: Int = .max, visit: Visit
  ) throws -> Int {
    let chunk = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 18, alignment: 16)
    defer { chunk.deallocate() }
    var text: [UInt8] = []
    var pending: Range<Int>?
    var lineStart = 0
    var fileOffset = 0
    var validByteCount = 0
    var lineNumber = 0
    while true {
      let count = try file.read(
        into: UnsafeMutableRawBufferPointer(
          rebasing: chunk[..<min(chunk.count, limit - fileOffset)]), at: fileOffset)
      if count == 0 { break }
      fileOffset += count
      let searchStart = text.count
      text += chunk[..<count]
      try text.withUnsafeBufferPointer { text in
        var search = searchStart
        while let end = text[search...].firstIndex(of: UInt8(ascii: "\n")) {
          if let line = pending {
            lineNumber += 1
            let bytes = UnsafeBufferPointer(rebasing: text[line])
            if let name = Self.ownName(of: bytes) {
              visit(bytes, name)
            } else {
              guard let name = Self.name(of: bytes) else { throw self.damaged(lineNumber) }
              name.withUnsafeBufferPointer { visit(bytes, $0) }
            }
            validByteCount += line.count + 1
          }
          pending = lineStart..<end
          lineStart = end + 1
          search = lineStart
        }
      }
      let done = pending?.lowerBound ?? lineStart
      text.removeFirst(done)
      lineStart -= done
      pending = pending.map { 0..<$0.count }
      guard text.count <= Self.maxLineByteCount else { throw self.damaged(lineNumber + 1) }
    }
    if let line = pending {
      try text.withUnsafeBufferPointer { text in
        let bytes = UnsafeBufferPointer(rebasing: text[line])
        // A truncated line is not valid JSON. Anything else was not written by us and must not be
        // removed.
        guard let json = try? JSONValue(parsing: Array(bytes)) else { return }
        guard let name = json["name"]?.string else { throw self.damaged(lineNumber + 1) }
        Array(name.utf8).withUnsafeBufferPointer { visit(bytes, $0) }
        validByteCount += line.count + 1
      }
    }
    return validByteCount
  }

  private static let maxLineByteCount = 16 << 20

  private func damaged(_ line: Int) -> FileSinkError {
    FileSinkError(
      .inconsistent,
      "\(self.path) line \(line) is not a JSON object with a name: the file was edited, or the "
        + "disk lost data; correct or restore it")
  }

  /// The name of a line as this program writes it, which needs no parser: a directory of a year may
  /// have half a million lines.
  private static func ownName(of line: UnsafeBufferPointer<UInt8>) -> UnsafeBufferPointer<UInt8>? {
    let start: StaticString = "{\"name\":\""
    let prefix = UnsafeBufferPointer(start: start.utf8Start, count: start.utf8CodeUnitCount)
    guard line.starts(with: prefix), line.last == UInt8(ascii: "}") else { return nil }
    let rest = line[prefix.count...]
    guard let end = rest.firstIndex(of: UInt8(ascii: "\"")) else { return nil }
    let name = rest[..<end]
    return name.contains(UInt8(ascii: "\\")) ? nil : UnsafeBufferPointer(rebasing: name)
  }

  /// The `name` of a line that is a whole JSON object, nil for anything else.
  private static func name(of line: UnsafeBufferPointer<UInt8>) -> [UInt8]? {
    (try? JSONValue(parsing: Array(line)))?["name"]?.string.map { Array($0.utf8) }
  }

  /// The files that the file of a line replaces; none for most lines, which need no parser.
  static func replaced(by line: UnsafeBufferPointer<UInt8>) -> [String] {
    let key: StaticString = "\"replaces\""
    let start = UnsafeRawPointer(line.baseAddress)
    guard let start, let found = c_memmem(start, line.count, key.utf8Start, key.utf8CodeUnitCount)
    else { return [] }
    let rest = line[(found - start + key.utf8CodeUnitCount)...]
    if rest.starts(with: ":[]".utf8) { return [] }
    return Self.replaced(by: (try? JSONValue(parsing: Array(line))) ?? nil)
  }

  static func replaced(by line: JSONValue) -> [String] {
    (line["replaces"]?.array ?? []).compactMap(\.string)
  }

  private func removeUnendedLine(_ file: borrowing OpenFile) throws(FileSystemError) {
    guard let size = try self.fileSystem.size(of: self.path), size > 0 else { return }
    var end = size
    let chunk = UnsafeMutableRawBufferPointer.allocate(byteCount: 4096, alignment: 16)
    defer { chunk.deallocate() }
    while end > 0 {
      let start = max(0, end - chunk.count)
      let part = UnsafeMutableRawBufferPointer(rebasing: chunk[..<(end - start)])
      let count = try file.read(into: part, at: start)
      if let index = part[..<count].lastIndex(of: UInt8(ascii: "\n")) {
        end = start + index + 1
        break
      }
      end = start
    }
    if end < size { try file.truncate(to: end) }
  }
}
