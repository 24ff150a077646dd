internal import Bytes
internal import Cryptography
internal import Pipeline

/// The key of the events or read records that share a file.
struct SegmentKey: Hashable {
  var topic: String
  var entity: String
  /// Days since 1970, of the commit time or (`isExportDate`) of the wall clock, UTC.
  var day: Int64
  var isExportDate: Bool
  /// Nil for events.
  var pass: Pass?
  /// Whether events come from the dead letters. Their file does not show how far the stream was
  /// read.
  var isRedriven = false

  /// The number of a pass over all records of the entity, and of its request, from 1.
  struct Pass: Hashable {
    var number: Int
    var request: Int
  }
}

/// The kind of a family of files; the two never treat each other's files as their own.
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

/// Name of a file of events (LinesAndColumns.md#file-names): its place below the sink's directory.
struct SegmentName: Equatable {
  var kind: SegmentKind
  var pipeline: String
  /// Relative to the sink's directory: `Opportunity/commit_date=2026-02-17`.
  var directory: String
  /// `opps-OpportunityChangeEvent-e1-000000000042`. The names of a topic's files, without their
  /// directories, sort in the order of the stream. A file of records that were read has the place
  /// in the stream before which their pass belongs, followed by `-s1-r1-000000000000`: pass,
  /// request, and number of the first record. A compacted file has pass 0; see `compactedPath`.
  var stem: String

  init(
    kind: SegmentKind, pipeline: String, key: SegmentKey, epoch: Int, ordinal: Int64, row: Int = 0
  ) {
    self.kind = kind
    self.pipeline = Self.pipelinePart(pipeline)
    let date = (key.isExportDate ? "export_date=" : "commit_date=") + UTCTime.date(day: key.day)
    switch kind {
    case .records: self.directory = Self.sanitized(key.entity) + "/" + date
    case .deadLetters: self.directory = date
    }
    self.stem =
      "\(self.pipeline)-\(Self.topicPart(key.topic))-e\(Self.sortable(epoch))-"
      + Self.padded(ordinal)
    if let pass = key.pass {
      self.stem +=
        "-s\(Self.sortable(pass.number))-r\(Self.sortable(pass.request))-\(Self.padded(Int64(row)))"
    }
  }

  private static func padded(_ number: Int64) -> String {
    let digits = String(number)
    return String(repeating: "0", count: max(0, 12 - digits.utf8.count)) + digits
  }

  /// `e1` to `e9`, `ea10` to `ea99`, `eb100` and so on: a letter for the number of digits, so that
  /// names sort by epoch. Earlier versions wrote `e10`; epochs below 10 have kept their form. The
  /// same applies to the numbers of passes and requests.
  private static func sortable(_ number: Int) -> String {
    let digits = String(number)
    let letter = Self.letter(digitCount: digits.utf8.count).map { String(Unicode.Scalar($0)) }
    return "\(letter ?? "")\(digits)"
  }

  /// nil for a single digit, `a` for two. An `Int` has 19 digits at most.
  private static func letter(digitCount: Int) -> UInt8? {
    digitCount < 2 ? nil : UInt8(ascii: "a") + UInt8(digitCount - 2)
  }

  /// The last part of the topic. `/data/X__chn` and `/event/X__chn` may both exist, so if the last
  /// part could also belong to the other family, the family follows after a dot, which no topic
  /// contains.
  static func topicPart(_ topic: String) -> String {
    let parts = topic.utf8.split(separator: UInt8(ascii: "/")).map { String(Substring($0)) }
    let last = parts.last ?? ""
    let isEvent = parts.first == "event"
    let family = isEvent ? "event" : "data"
    return Self.sanitized(last) + (isEvent == last.hasSuffix("__e") ? "" : ".\(family)")
  }

  /// Relative path of the finished file.
  var path: String { "\(self.directory)/\(self.stem)\(self.kind.suffix)" }

  /// Relative path while in progress.
  var partPath: String { Self.partPath(forFinal: self.path) }

  static func partPath(forFinal path: String) -> String {
    let start = path.utf8.lastIndex(of: UInt8(ascii: "/")).map(path.utf8.index(after:))
    let name = start ?? path.startIndex
    return path[..<name] + "." + path[name...] + Self.partSuffix
  }

  /// Relative path of the file that takes in a finished file of events and those that follow it.
  ///
  /// It looks like a file of pass 0, because views and programs of earlier versions read the place of
  /// such names.
  ///
  /// - Parameter compaction: how often the first file has been compacted, this time included.
  static func compactedPath(first path: String, compaction: Int64) -> String {
    let suffix = SegmentKind.records.suffix
    var parts = path.dropLast(suffix.count).split(separator: "-", omittingEmptySubsequences: false)
    if compaction > 1 { parts.removeLast(Self.passPartCount) }
    return parts.joined(separator: "-")
      + "-s0-r\(Self.sortable(Int(compaction)))-\(Self.padded(0))\(suffix)"
  }

  /// Relative path of the file that takes the place of a finished one, with other lines.
  ///
  /// A file of events is named as if it had been compacted. In the name of a file of records that were
  /// read, the digits before the number of its first record count how often it was rewritten. Views and
  /// programs of earlier versions do not read that number.
  static func rewrittenPath(of path: String, _ parsed: Parsed, kind: SegmentKind) -> String? {
    let suffix = kind.suffix
    guard path.hasSuffix(suffix) else { return nil }
    var parts = path.dropLast(suffix.count).split(separator: "-", omittingEmptySubsequences: false)
      .map { String($0) }
    guard parsed.pass != nil else {
      if parsed.compaction > 0 { parts.removeLast(Self.passPartCount) }
      parts += ["s0", "r\(Self.sortable(Int(parsed.compaction + 1)))", Self.padded(0)]
      return parts.joined(separator: "-") + suffix
    }
    guard let digits = parts.popLast() else { return nil }
    let (count, row) = (digits.dropLast(Self.rowDigitCount), digits.suffix(Self.rowDigitCount))
    guard let rewritten = count.isEmpty ? 0 : Int(count) else { return nil }
    return (parts + ["\(rewritten + 1)\(row)"]).joined(separator: "-") + suffix
  }

  /// Digits of the number of a file's first record, which `padded` writes.
  private static let rowDigitCount = 12

  /// `s1`, `r1` and `000000000000`.
  private static let passPartCount = 3

  /// Relative path of the file that takes the lines of several frames in as one, while in progress.
  static func joinedPath(forFinal path: String) -> String {
    let part = Self.partPath(forFinal: path)
    return String(part.dropLast(Self.partSuffix.count)) + Self.joinedSuffix + Self.partSuffix
  }

  private static let partSuffix = ".part"
  private static let joinedSuffix = ".joined"

  /// The relation of a file name to a pipeline.
  enum Ownership: Equatable { case finished, inProgress, foreign }

  /// The parts of a finished file's name.
  struct Parsed: Equatable {
    /// The place of the pipeline in the name.
    var pipelinePart: Range<Int>
    /// The place of the topic in the name.
    var topicPart: Range<Int>
    var epoch: Int64
    var firstOrdinal: Int64
    /// The number of the pass that read the file's records; nil for events.
    var pass: Int64?
    /// How often the first events of the file have been compacted; 0 for a file that a run wrote.
    var compaction: Int64 = 0
  }

  /// Recognizes the files of one pipeline. Works on bytes, because manifests and directories hold
  /// half a million names after a year.
  struct Matcher {
    private let suffix: [UInt8]
    private let pipelinePart: [UInt8]

    init(kind: SegmentKind, pipeline: String) {
      self.suffix = Array(kind.suffix.utf8)
      self.pipelinePart = Array(SegmentName.pipelinePart(pipeline).utf8)
    }

    /// The owner of a file, determined by its name without directories.
    func ownership(of fileName: String) -> Ownership {
      var fileName = fileName
      return fileName.withUTF8 { name in
        guard name.first == UInt8(ascii: ".") else {
          return self.parse(name) == nil ? .foreign : .finished
        }
        var inner = name.dropFirst()
        guard Self.remove(SegmentName.partSuffix, from: &inner) else { return .foreign }
        Self.remove(SegmentName.joinedSuffix, from: &inner)
        return self.parse(UnsafeBufferPointer(rebasing: inner)) == nil ? .foreign : .inProgress
      }
    }

    @discardableResult
    private static func remove(
      _ suffix: String, from name: inout Slice<UnsafeBufferPointer<UInt8>>
    ) -> Bool {
      guard name.suffix(suffix.utf8.count).elementsEqual(suffix.utf8) else { return false }
      name = name.dropLast(suffix.utf8.count)
      return true
    }

    /// nil if this is not a finished file of the pipeline.
    ///
    /// - Parameter name: without directories.
    func parse(_ name: UnsafeBufferPointer<UInt8>) -> Parsed? {
      self.parseAny(name).flatMap { parsed in
        name[parsed.pipelinePart].elementsEqual(self.pipelinePart) ? parsed : nil
      }
    }

    /// Like `parse`, for a finished file of any pipeline.
    func parseAny(_ name: UnsafeBufferPointer<UInt8>) -> Parsed? {
      // Parses from the right, because only the pipeline's name may contain hyphens.
      var end = name.count - self.suffix.count
      guard end > 0, name[end...].elementsEqual(self.suffix) else { return nil }
      let pass = Self.pass(before: &end, in: name)
      guard let ordinal = Self.number(before: &end, in: name),
        Self.skip("-", before: &end, in: name),
        let epoch = Self.sortable("e", before: &end, in: name),
        Self.skip("e", before: &end, in: name),
        Self.skip("-", before: &end, in: name),
        let hyphen = name[..<end].lastIndex(of: UInt8(ascii: "-"))
      else { return nil }
      var parsed = Parsed(
        pipelinePart: 0..<hyphen, topicPart: hyphen + 1..<end, epoch: epoch, firstOrdinal: ordinal)
      switch pass {
      case (0, let request)?: parsed.compaction = request
      case (let number, _)?: parsed.pass = number
      case nil: break
      }
      return parsed
    }

    /// Reads `-s1-r1-000000000000`; leaves `end` unchanged if there is none.
    private static func pass(
      before end: inout Int, in name: UnsafeBufferPointer<UInt8>
    ) -> (number: Int64, request: Int64)? {
      var start = end
      guard Self.number(before: &start, in: name) != nil, Self.skip("-", before: &start, in: name),
        let request = Self.sortable("r", before: &start, in: name),
        Self.skip("r", before: &start, in: name), Self.skip("-", before: &start, in: name),
        let pass = Self.sortable("s", before: &start, in: name),
        Self.skip("s", before: &start, in: name), Self.skip("-", before: &start, in: name)
      else { return nil }
      end = start
      return (pass, request)
    }

    /// Reads a number with its letter, if it has one; see `SegmentName.sortable`.
    private static func sortable(
      _ marker: Unicode.Scalar, before end: inout Int, in name: UnsafeBufferPointer<UInt8>
    ) -> Int64? {
      let last = end
      guard let number = Self.number(before: &end, in: name) else { return nil }
      // `e` is also the letter for six digits; it counts as such only after another `e`. No number
      // that can be read has so many digits that its letter is `r` or `s`.
      if let letter = SegmentName.letter(digitCount: last - end), end > 1,
        name[end - 1] == letter, name[end - 2] == UInt8(ascii: marker)
      {
        end -= 1
      }
      return number
    }

    private static func number(
      before end: inout Int, in name: UnsafeBufferPointer<UInt8>
    ) -> Int64? {
      var value: Int64 = 0
      var scale: Int64 = 1
      let last = end
      while end > 0, case let digit = Int64(name[end - 1]) - 48, (0...9).contains(digit) {
        guard last - end < 18 else { return nil }
        value += digit * scale
        scale *= 10
        end -= 1
      }
      return end < last ? value : nil
    }

    private static func skip(
      _ character: Unicode.Scalar, before end: inout Int, in name: UnsafeBufferPointer<UInt8>
    ) -> Bool {
      guard end > 0, name[end - 1] == UInt8(ascii: character) else { return false }
      end -= 1
      return true
    }
  }

  /// A value as part of a path: only letters, digits and `_`. If anything else is replaced, part of
  /// the value's hash is added, so that different values stay different.
  static func sanitized(_ text: String) -> String { Self.sanitized(text, keeping: []) }

  static func pipelinePart(_ text: String) -> String {
    Self.sanitized(text, keeping: [UInt8(ascii: "-"), UInt8(ascii: ".")])
  }

  private static func sanitized(_ text: String, keeping extra: [UInt8]) -> String {
    let maxByteCount = 80
    var isChanged = text.isEmpty || text.utf8.count > maxByteCount
    var bytes = text.utf8.prefix(maxByteCount).map { byte -> UInt8 in
      if byte.isWordCharacter || extra.contains(byte) { return byte }
      isChanged = true
      return UInt8(ascii: "_")
    }
    // A leading dot would hide the file, and a leading `_` is reserved for the catalogs.
    if let first = bytes.first, first == UInt8(ascii: ".") || first == UInt8(ascii: "_") {
      bytes[0] = UInt8(ascii: "x")
      isChanged = true
    }
    if bytes.isEmpty { bytes = [UInt8(ascii: "x")] }
    let kept = String(decoding: bytes, as: UTF8.self)
    return isChanged ? "\(kept)_\(SHA256.hash(of: Array(text.utf8)).hex.prefix(8))" : kept
  }
}
