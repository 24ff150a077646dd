internal import Digest
internal import Pipeline

/// Which events share a file.
struct SegmentKey: Hashable {
  var topic: String
  var entity: String
  /// Days since 1970, of the commit time or (`isExportDate`) of the wall clock, UTC.
  var day: Int64
  var isExportDate: Bool
}

/// What a family of files holds; the two never take each other's files for their own.
enum SegmentKind {
  case records
  case deadLetters

  var suffix: String {
    switch self {
    case .records: ".ndjson.zst"
    case .deadLetters: ".dead.ndjson.zst"
    }
  }
}

/// Name of a file of events (design page, section 5): where it lies below the sink's directory.
struct SegmentName: Equatable {
  var kind: SegmentKind
  var pipeline: String
  /// Relative to the sink's directory: `Opportunity/commit_date=2026-02-17`.
  var directory: String
  /// `opps-OpportunityChangeEvent-e1-000000000042`.
  var stem: String

  init(kind: SegmentKind, pipeline: String, key: SegmentKey, epoch: Int, ordinal: Int64) {
    self.kind = kind
    self.pipeline = Self.pipelinePart(pipeline)
    let date = (key.isExportDate ? "export_date=" : "commit_date=") + UTCTime.date(day: key.day)
    switch kind {
    case .records: self.directory = Self.sanitized(key.entity) + "/" + date
    case .deadLetters: self.directory = date
    }
    let topic = key.topic.split(separator: "/").last.map(String.init) ?? ""
    let digits = String(ordinal)
    self.stem =
      "\(self.pipeline)-\(Self.sanitized(topic))-e\(epoch)-"
      + String(repeating: "0", count: max(0, 12 - digits.utf8.count)) + digits
  }

  /// Relative path of the finished file.
  var path: String { "\(self.directory)/\(self.stem)\(self.kind.suffix)" }

  /// Relative path while in progress.
  var partPath: String { Self.partPath(forFinal: self.path) }

  static func partPath(forFinal path: String) -> String {
    let start = path.utf8.lastIndex(of: UInt8(ascii: "/")).map(path.utf8.index(after:))
    let name = start ?? path.startIndex
    return path[..<name] + "." + path[name...] + ".part"
  }

  /// What a file of that name is to a pipeline.
  enum Ownership: Equatable { case finished, inProgress, foreign }

  static func ownership(of fileName: String, kind: SegmentKind, pipeline: String) -> Ownership {
    var name = Substring(fileName)
    var result = Ownership.finished
    if name.hasPrefix("."), name.hasSuffix(".part") {
      name = name.dropFirst().dropLast(".part".count)
      result = .inProgress
    }
    guard name.hasSuffix(kind.suffix) else { return .foreign }
    // From the right: the pipeline's name may hold hyphens, the other parts do not.
    let parts = name.dropLast(kind.suffix.count).split(
      separator: "-", omittingEmptySubsequences: false)
    guard parts.count >= 4, parts[parts.count - 1].allSatisfy({ $0.isASCII && $0.isNumber }),
      !parts[parts.count - 1].isEmpty, parts[parts.count - 2].hasPrefix("e"),
      parts.dropLast(3).joined(separator: "-") == Self.pipelinePart(pipeline)
    else { return .foreign }
    return result
  }

  /// A value that becomes part of a path: letters, digits and `_` only. A value with anything else
  /// gets a piece of its hash, so that different values stay different.
  static func sanitized(_ text: String) -> String { Self.sanitized(text, keeping: []) }

  static func pipelinePart(_ text: String) -> String {
    Self.sanitized(text, keeping: [UInt8(ascii: "-"), UInt8(ascii: ".")])
  }

  private static func sanitized(_ text: String, keeping extra: [UInt8]) -> String {
    let maxByteCount = 80
    var isChanged = text.isEmpty || text.utf8.count > maxByteCount
    var bytes = text.utf8.prefix(maxByteCount).map { byte -> UInt8 in
      switch byte {
      case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "_"):
        return byte
      default:
        if extra.contains(byte) { return byte }
        isChanged = true
        return UInt8(ascii: "_")
      }
    }
    // A leading dot would hide the file, a leading `_` is for the catalogues beside the data.
    if let first = bytes.first, first == UInt8(ascii: ".") || first == UInt8(ascii: "_") {
      bytes[0] = UInt8(ascii: "x")
      isChanged = true
    }
    let kept = String(decoding: bytes, as: UTF8.self)
    return isChanged ? "\(kept)_\(SHA256.hash(of: Array(text.utf8)).hex.prefix(8))" : kept
  }
}
