internal import Checkpoint
internal import DurableFiles
internal import Glibc
import JSON

/// `<pipeline>.runs.ndjson`, beside the checkpoint: what happened, the newest last. A line when a run
/// begins, one when it ends, and one for each `verify`.
///
/// It is a memory and not state: no run depends on it. A line that cannot be read is skipped.
struct RunLedger {
  struct Content {
    var entries: [LedgerEntry] = []
    /// Lines that were skipped.
    var damagedCount = 0

    /// The runs at the end that have begun and left no report, the newest first.
    var unreported: [RunBeginning] {
      var found: [RunBeginning] = []
      for entry in self.entries.reversed() {
        switch entry {
        case .began(let beginning): found.append(beginning)
        case .run: return found
        case .verify: continue
        }
      }
      return found
    }
  }

  /// A file that would exceed it loses its oldest lines.
  static let maxByteCount = 4 << 20
  /// A line is read up to this length; those of this program are shorter.
  static let maxLineByteCount = 1 << 20
  private static let lockAttempts = 100

  let paths: StatePaths
  var maxByteCount = Self.maxByteCount

  /// Adds a line. A reader sees the file before or after it.
  ///
  /// - Parameter isDurable: whether the line must survive a power cut.
  /// - Throws: `FileSystemError`.
  func append(
    _ entry: LedgerEntry, isDurable: Bool = true, hiding secrets: SecretMask
  ) throws(FileSystemError) {
    let fileSystem = SystemFileSystem()
    let line = Array(PrintableText(json: entry.json, .compact, hiding: secrets).text.utf8)
    for _ in 0..<Self.lockAttempts {
      let file = try OpenFile(self.paths.runs, [.write, .create, .append], on: fileSystem)
      // `verify` may end while a run shortens the file.
      guard try file.lock(wait: false), try file.hasName() else {
        usleep(10_000)
        continue
      }
      let size = try file.status().byteCount
      if size + line.count > self.maxByteCount {
        return try self.shorten(file, size: size, adding: line, on: fileSystem)
      }
      // A truncated line stays on a line of its own.
      let last = try file.content(from: max(0, size - 1), byteCount: min(size, 1))
      try file.write((last.isEmpty || last == Self.lineEnd ? [] : Self.lineEnd) + line)
      if isDurable { try file.synchronize() }
      return
    }
    throw FileSystemError("flock", self.paths.runs, code: EWOULDBLOCK)
  }

  private static let lineEnd = [UInt8(ascii: "\n")]

  /// Replaces the file by its newest half and a line.
  private func shorten(
    _ file: borrowing OpenFile, size: Int, adding line: [UInt8], on fileSystem: SystemFileSystem
  ) throws(FileSystemError) {
    let length = min(size, self.maxByteCount / 2)
    let tail = try file.content(from: size - length, byteCount: length)
    // The first line of the tail may be a part of one.
    var kept = Array(tail.drop { $0 != UInt8(ascii: "\n") }.dropFirst())
    if kept.last.map({ $0 != UInt8(ascii: "\n") }) == true { kept += Self.lineEnd }
    let temporary = "\(self.paths.directory)/.\(self.paths.pipeline).runs.ndjson.tmp"
    let replacement = try OpenFile(temporary: temporary, on: fileSystem)
    try replacement.write(kept + line)
    try replacement.synchronize()
    try fileSystem.rename(temporary, to: self.paths.runs)
    try fileSystem.synchronizeDirectory(self.paths.directory)
  }

  // MARK: Reading

  /// The runs at the end of the ledger that left no report, the newest first; none if that cannot be read.
  var unreported: [RunBeginning] {
    // Beginnings are short, so the end of the file is enough.
    let tail = RunLedger(paths: self.paths, maxByteCount: 16 << 10)
    return (try? tail.read())?.unreported ?? []
  }

  /// The lines of the file; none without one. Of a longer file than this program leaves, the end.
  ///
  /// - Throws: `FileSystemError`.
  func read() throws(FileSystemError) -> Content {
    let fileSystem = SystemFileSystem()
    guard try fileSystem.size(of: self.paths.runs) != nil else { return Content() }
    let file = try OpenFile(self.paths.runs, [], on: fileSystem)
    let size = try file.status().byteCount
    let start = max(0, size - self.maxByteCount)
    let bytes = try file.content(from: start, byteCount: size - start)
    var content = Content()
    for (index, line) in bytes.split(separator: UInt8(ascii: "\n")).enumerated() {
      if line.count <= Self.maxLineByteCount, let json = try? JSONValue(parsing: Array(line)),
        let entry = LedgerEntry(json: json)
      {
        content.entries.append(entry)
      } else if index > 0 || start == 0 {
        content.damagedCount += 1
      }
    }
    return content
  }
}
