internal import Bytes
package import JSON
internal import Pipeline

/// The checkpoint's record of a file in progress, which is enough to finish it in another process.
struct SegmentRecord: Equatable {
  /// Relative path in progress.
  var part: String
  /// Relative path once finished; the name in the manifest.
  var name: String
  /// Bytes of the finished file; all but those of `ZstdCompressor.endOfFrame` are durable.
  var byteCount: Int
  /// Hash of the finished file, lowercase hexadecimal.
  var sha256: String
  /// The line of the manifest.
  var manifest: JSONValue
  /// The file takes no more events.
  var isClosing: Bool
  /// What a later run needs to append to the file; nil if none may.
  var continuation: Continuation?

  /// A file that a later run may continue.
  struct Continuation: Equatable {
    /// Milliseconds since 1970.
    var openedAt: Int64
    /// Days since 1970, of the commit time or (`isExportDate`) of the wall clock, UTC.
    var day: Int64
    var isExportDate: Bool
    /// The form of the lines.
    var form: String
    /// zstd frames, one for each run that has appended to the file.
    var frameCount: Int
  }

  /// The file has to be joined before it is finished, because a finished file is one frame.
  var hasFrames: Bool { (self.continuation?.frameCount ?? 1) > 1 }

  /// The file in progress is the joined one of a file that had several frames.
  var isJoined: Bool { self.part == SegmentName.joinedPath(forFinal: self.name) }

  /// Relative directory of both names.
  var directory: String {
    self.name.utf8.lastIndex(of: UInt8(ascii: "/")).map { String(self.name[..<$0]) } ?? ""
  }

  /// Bytes that are durable once the checkpoint with this record is.
  var committedByteCount: Int { self.byteCount - ZstdCompressor.endOfFrame.count }
}

extension SegmentRecord {
  var json: JSONValue {
    var members = [
      JSONMember("from", .string(self.part)), JSONMember("to", .string(self.name)),
      JSONMember("length", .integer(self.byteCount)),
      JSONMember("closing", .boolean(self.isClosing)), JSONMember("manifest", self.manifest),
    ]
    if let continuation { members.append(JSONMember("open", continuation.json)) }
    return JSONValue(.object(members))
  }

  /// - Throws: `FileSinkError.inconsistent` for anything that `json` does not produce, above all
  ///   names that lead out of the sink's directory.
  init(json: JSONValue) throws(FileSinkError) {
    guard let part = json["from"]?.string, let name = json["to"]?.string,
      let length = json["length"]?.integer, let isClosing = json["closing"]?.boolean,
      let manifest = json["manifest"], let sha256 = manifest["sha256"]?.string,
      manifest["name"]?.string == name, length > ZstdCompressor.endOfFrame.count,
      [SegmentName.partPath(forFinal: name), SegmentName.joinedPath(forFinal: name)].contains(part),
      Self.staysInside(name)
    else { throw Self.damaged }
    self.init(
      part: part, name: name, byteCount: Int(length), sha256: sha256, manifest: manifest,
      isClosing: isClosing)
    if let open = json["open"] {
      guard let continuation = Continuation(json: open), !self.isJoined else { throw Self.damaged }
      self.continuation = continuation
    }
  }

  static let damaged = FileSinkError(
    .inconsistent,
    "the checkpoint's entry for a file in progress is damaged; put back a copy of the "
      + "checkpoint, or move it away and run 'checkpoint restore --from-manifest'")

  /// Compares bytes, because a combining character after a slash would hide it in a comparison of
  /// characters.
  private static func staysInside(_ name: String) -> Bool {
    name.utf8.first != UInt8(ascii: "/")
      && !name.utf8.split(separator: UInt8(ascii: "/")).contains { $0.elementsEqual("..".utf8) }
  }
}

extension SegmentRecord.Continuation {
  fileprivate var json: JSONValue {
    [
      "since_ms": .integer(self.openedAt), "day": .integer(self.day),
      "export_date": .boolean(self.isExportDate), "form": .string(self.form),
      "frames": .integer(self.frameCount),
    ]
  }

  /// The days of commit times.
  private static let days: ClosedRange<Int64> = {
    let (first, last) = (CommitTime.range.lowerBound, CommitTime.range.upperBound)
    return UTCTime.day(ofMilliseconds: first)...UTCTime.day(ofMilliseconds: last)
  }()

  /// nil for anything that `json` does not produce.
  fileprivate init?(json: JSONValue) {
    guard let openedAt = json["since_ms"]?.calendarTime, let day = json["day"]?.integer,
      let isExportDate = json["export_date"]?.boolean,
      let form = json["form"]?.string, let frameCount = json["frames"]?.integer,
      (1...1_000_000_000).contains(frameCount), Self.days.contains(day)
    else { return nil }
    self.init(
      openedAt: openedAt, day: day, isExportDate: isExportDate, form: form,
      frameCount: Int(frameCount))
  }
}

/// A file that stays open from run to run, as the checkpoint describes it.
package struct ContinuedFile: Sendable, Equatable {
  /// Milliseconds since 1970.
  package var openedAt: Int64
  package var events: Int64
  /// Compressed.
  package var byteCount: Int

  /// - Parameter state: the sink's state in the checkpoint.
  /// - Throws: `FileSinkError.inconsistent` for a damaged state.
  package static func list(
    in state: JSONValue?, directory: String
  ) throws(FileSinkError) -> [ContinuedFile] {
    try SegmentRecord.records(in: state, directory: directory).compactMap { record in
      guard let continuation = record.continuation, !record.isClosing else { return nil }
      return ContinuedFile(
        openedAt: continuation.openedAt, events: record.manifest["events"]?.integer ?? 0,
        byteCount: record.byteCount)
    }
  }
}

extension SegmentRecord {
  /// The files in progress of a state.
  ///
  /// - Throws: `FileSinkError.inconsistent` for a damaged state.
  static func records(
    in state: JSONValue?, directory: String
  ) throws(FileSinkError) -> [SegmentRecord] {
    guard let state else { return [] }
    guard let files = state["files"]?.array else {
      throw FileSinkError(
        .inconsistent,
        "the checkpoint's state of the files in \(directory) is damaged: put back a copy")
    }
    var records: [SegmentRecord] = []
    for file in files { records.append(try SegmentRecord(json: file)) }
    return records
  }
}
