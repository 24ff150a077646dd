internal import Bytes
package import Clocks
internal import DurableFiles
internal import JSON
package import Pipeline

/// `_erased.ndjson`: a line for each record whose values were erased from the files of a directory, so
/// that later events and reads bring none back.
///
/// Replaced as a whole, in one step.
package struct ErasedList {
  package static let fileName = "_erased.ndjson"

  /// Absolute.
  private let path: String
  private let directory: String
  private let fileSystem: any FileSystem

  /// A line takes about a hundred bytes.
  private static let maxByteCount = 256 << 20

  /// - Parameters:
  ///   - directory: absolute.
  ///   - permissions: those of a new list; nil for the usual ones.
  package init(directory: String, permissions: FileSinkConfiguration.Permissions? = nil) {
    self.init(
      directory: directory,
      fileSystem: SystemFileSystem(
        permissions: permissions.map { FilePermissions(mode: $0.mode, groupID: $0.groupID) }))
  }

  init(directory: String, fileSystem: any FileSystem) {
    self.directory = directory
    self.path = "\(directory)/\(Self.fileName)"
    self.fileSystem = fileSystem
  }

  /// The records in the list; empty if the file does not exist.
  ///
  /// - Throws: `FileSinkError.inconsistent` for a line that this program does not write, because values
  ///   of a record could come back; `.io`.
  package func records() throws(FileSinkError) -> ErasedRecords {
    var records = ErasedRecords()
    for entry in try self.entries() { records.insert(entry.record, of: entry.entity) }
    return records
  }

  /// Adds records; durable on return. Those in the list keep their lines.
  package func add(
    _ records: [RecordID], of entity: String, clock: ProcessClock
  ) throws(FileSinkError) {
    try self.add(records, of: entity, now: clock.wallTime)
  }

  func add(
    _ records: [RecordID], of entity: String, now: Int64
  ) throws(FileSinkError) {
    let entries = try self.entries()
    let known = Set(entries.map(\.record))
    let time = UTCTime.timestamp(milliseconds: now)
    let new = Set(records).subtracting(known).sorted()
      .map { Entry(entity: entity, record: $0, time: time) }
    guard !new.isEmpty else { return }
    let text = (entries + new).map { $0.json.text(.compact) + "\n" }.joined()
    do throws(FileSystemError) {
      try self.fileSystem.makeDirectories(self.directory)
      let temporary = "\(self.directory)/.\(Self.fileName).tmp"
      let file = try OpenFile(temporary: temporary, on: self.fileSystem)
      try file.write(Array(text.utf8))
      try file.synchronize()
      try file.checkIntact(byteCount: text.utf8.count)
      try self.fileSystem.rename(temporary, to: self.path)
      try self.fileSystem.synchronizeDirectory(self.directory)
    } catch {
      throw FileSinkError(error)
    }
  }

  // MARK: Lines

  struct Entry: Equatable {
    var entity: String
    var record: RecordID
    /// When it was erased, `2026-02-17T04:03:15.000Z`.
    var time: String

    var json: JSONValue {
      [
        "entity": .string(self.entity), "record_id": .string(self.record.description),
        "erased_at": .string(self.time),
      ]
    }

    init(entity: String, record: RecordID, time: String) {
      (self.entity, self.record, self.time) = (entity, record, time)
    }

    /// nil for what `json` does not produce.
    init?(json: JSONValue) {
      guard let entity = json["entity"]?.string, !entity.isEmpty,
        let text = json["record_id"]?.string, let record = try? RecordID(text),
        let time = json["erased_at"]?.string, ObjectFreshness.milliseconds(of: time) != nil
      else { return nil }
      self.init(entity: entity, record: record, time: time)
    }
  }

  func entries() throws(FileSinkError) -> [Entry] {
    let content: [UInt8]
    do throws(FileSystemError) {
      guard let size = try self.fileSystem.size(of: self.path), size > 0 else { return [] }
      content = try OpenFile(self.path, [], on: self.fileSystem)
        .content(byteCount: min(size, Self.maxByteCount))
    } catch {
      throw FileSinkError(error)
    }
    var entries: [Entry] = []
    for (index, line) in content.split(separator: UInt8(ascii: "\n")).enumerated() {
      guard let json = try? JSONValue(parsing: Array(line)), let entry = Entry(json: json) else {
        throw FileSinkError(
          .inconsistent,
          "\(self.path) line \(index + 1) does not name an erased record: the file was edited, or the "
            + "disk lost data. Put back a copy of it, or correct the line")
      }
      entries.append(entry)
    }
    return entries
  }
}
