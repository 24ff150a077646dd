internal import JSON

/// The exports of earlier runs of this pipeline from this org, according to the manifest.
///
/// If the checkpoint's position is behind it, the state was lost or an old copy was restored.
package struct ExportHistory: Sendable, Equatable {
  package struct Topic: Sendable, Equatable {
    /// The highest epoch; a run that starts again has to use a higher one.
    package var epoch: Int
    /// The last event of that epoch in a finished file.
    package var lastOrdinal: Int64
    /// Its replay ID, hexadecimal.
    package var lastReplayID: String
  }

  /// By topic. Dates and entities have separate files, so the entry describes the file that began
  /// last.
  package internal(set) var topics: [String: Topic] = [:]

  /// The exports of another pipeline here from the same org.
  package struct Other: Sendable, Equatable {
    package var pipeline: String
    package var topic: String
  }

  /// In the order of the manifest, each once.
  package internal(set) var others: [Other] = []

  /// Another org whose events this pipeline exported here, if it has the newest files.
  package internal(set) var otherOrg: String?

  /// The last pass over records, by the folder of the object.
  var passes: [String: Int] = [:]

  /// The topics of finished files of events, by the folder of the object.
  var folders: [String: Set<String>] = [:]

  package var isEmpty: Bool { self.topics.isEmpty }
}

/// Finds the newest file of each topic while the manifest is read.
struct ExportHistoryReader {
  private struct Newest {
    var topicPart: [UInt8]
    var isExportDate: Bool
    var epoch: Int64
    var firstOrdinal: Int64
    var line: [UInt8]
    /// The folders of objects with files of the topic.
    var folders: [[UInt8]] = []
  }

  private let identity: SegmentIdentity
  private let matcher: SegmentName.Matcher
  private static let exportDate = Array("export_date=".utf8)
  /// One per topic, so a linear search is fast.
  private var newest: [Newest] = []
  private var passes: [String: Int] = [:]
  /// One line for each pipeline and topic part of other exporters.
  private var others: [(head: [UInt8], line: [UInt8])] = []

  init(kind: SegmentKind, identity: SegmentIdentity) {
    self.identity = identity
    self.matcher = SegmentName.Matcher(kind: kind, pipeline: identity.pipeline)
  }

  mutating func visit(
    _ line: UnsafeBufferPointer<UInt8>, name: UnsafeBufferPointer<UInt8>
  ) {
    let slash = UInt8(ascii: "/")
    let start = name.lastIndex(of: slash).map { $0 + 1 } ?? 0
    let fileName = UnsafeBufferPointer(rebasing: name[start...])
    guard let parsed = self.matcher.parse(fileName) else {
      return self.visitOther(line, fileName)
    }
    if let pass = parsed.pass {
      let entity = String(decoding: name.prefix { $0 != slash }, as: UTF8.self)
      self.passes[entity] = max(self.passes[entity] ?? 0, Int(pass))
      return
    }
    let topicPart = fileName[parsed.topicPart]
    let directory = name[..<max(start - 1, 0)]
    let date = directory.lastIndex(of: slash).map { $0 + 1 } ?? 0
    let isExportDate = directory[date...].starts(with: Self.exportDate)
    let known = self.newest.firstIndex {
      $0.isExportDate == isExportDate && $0.topicPart.elementsEqual(topicPart)
    }
    let folder = name.prefix { $0 != slash }
    if let known {
      let newest = self.newest[known]
      if !newest.folders.contains(where: { $0.elementsEqual(folder) }) {
        self.newest[known].folders.append(Array(folder))
      }
      if (newest.epoch, newest.firstOrdinal) >= (parsed.epoch, parsed.firstOrdinal) { return }
      self.newest[known].epoch = parsed.epoch
      self.newest[known].firstOrdinal = parsed.firstOrdinal
      self.newest[known].line.removeAll(keepingCapacity: true)
      self.newest[known].line += line
    } else {
      self.newest.append(
        Newest(
          topicPart: Array(topicPart), isExportDate: isExportDate, epoch: parsed.epoch,
          firstOrdinal: parsed.firstOrdinal, line: Array(line), folders: [Array(folder)]))
    }
  }

  private mutating func visitOther(
    _ line: UnsafeBufferPointer<UInt8>, _ fileName: UnsafeBufferPointer<UInt8>
  ) {
    guard let parsed = self.matcher.parseAny(fileName) else { return }
    let head = fileName[..<parsed.topicPart.upperBound]
    if self.others.contains(where: { $0.head.elementsEqual(head) }) { return }
    self.others.append((Array(head), Array(line)))
  }

  /// The content of the newest lines of this pipeline and org.
  var history: ExportHistory {
    var history = ExportHistory()
    history.passes = self.passes
    for (_, line) in self.others {
      guard let json = try? JSONValue(parsing: line), json["org"]?.string == self.identity.org,
        let pipeline = json["pipeline"]?.string, let topic = json["topic"]?.string
      else { continue }
      let other = ExportHistory.Other(pipeline: pipeline, topic: topic)
      if !history.others.contains(other) { history.others.append(other) }
    }
    for newest in self.newest {
      guard let json = try? JSONValue(parsing: newest.line),
        json["pipeline"]?.string == self.identity.pipeline, let org = json["org"]?.string
      else { continue }
      guard org == self.identity.org else {
        history.otherOrg = org
        continue
      }
      if let topic = json["topic"]?.string {
        for folder in newest.folders {
          history.folders[String(decoding: folder, as: UTF8.self), default: []].insert(topic)
        }
      }
      guard let topic = json["topic"]?.string,
        let lastOrdinal = json["last_ordinal"]?.integer,
        let lastReplayID = json["last_replay_id"]?.string
      else { continue }
      if let known = history.topics[topic],
        (Int64(known.epoch), known.lastOrdinal) >= (newest.epoch, lastOrdinal)
      {
        continue
      }
      history.topics[topic] = ExportHistory.Topic(
        epoch: Int(newest.epoch), lastOrdinal: lastOrdinal, lastReplayID: lastReplayID)
    }
    return history
  }
}
