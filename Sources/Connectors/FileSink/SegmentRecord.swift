internal import JSON

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

  /// Relative directory of both names.
  var directory: String {
    self.name.utf8.lastIndex(of: UInt8(ascii: "/")).map { String(self.name[..<$0]) } ?? ""
  }

  /// Bytes that are durable once the checkpoint with this record is.
  var committedByteCount: Int { self.byteCount - ZstdCompressor.endOfFrame.count }
}

extension SegmentRecord {
  var json: JSONValue {
    [
      "from": .string(self.part), "to": .string(self.name), "length": .integer(self.byteCount),
      "closing": .boolean(self.isClosing), "manifest": self.manifest,
    ]
  }

  /// - Throws: `FileSinkError.inconsistent` for anything that `json` does not produce, above all
  ///   names that lead out of the sink's directory.
  init(json: JSONValue) throws(FileSinkError) {
    guard let part = json["from"]?.string, let name = json["to"]?.string,
      let length = json["length"]?.integer, let isClosing = json["closing"]?.boolean,
      let manifest = json["manifest"], let sha256 = manifest["sha256"]?.string,
      manifest["name"]?.string == name, length > ZstdCompressor.endOfFrame.count,
      part == SegmentName.partPath(forFinal: name), Self.staysInside(name)
    else {
      throw FileSinkError(
        .inconsistent,
        "the checkpoint's entry for a file in progress is damaged; put back a copy of the "
          + "checkpoint, or move it away and run 'checkpoint restore --from-manifest'")
    }
    self.init(
      part: part, name: name, byteCount: Int(length), sha256: sha256, manifest: manifest,
      isClosing: isClosing)
  }
  /// Compares bytes, because a combining character after a slash would hide it in a comparison of
  /// characters.
  private static func staysInside(_ name: String) -> Bool {
    name.utf8.first != UInt8(ascii: "/")
      && !name.utf8.split(separator: UInt8(ascii: "/")).contains { $0.elementsEqual("..".utf8) }
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
