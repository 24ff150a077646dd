import Bytes
import Foundation
import JSON
import TestSupport

@testable import FileSink

/// Files with changes and reads of records by chance, all kinds of lines in all orders.
struct RandomStream {
  static let columns = ["A", "B", "C"]
  static let topic = "/data/ThingChangeEvent"
  static let entity = "Thing"
  static let pipeline = "opps"

  private var random: SplitMix
  private var clock: Int64 = 1_771_300_995_000
  private var ordinal: Int64 = 0
  private var epoch = 1
  private var pass = 0
  /// Events that became dead letters and came back.
  private var letters: [(epoch: Int, ordinal: Int64, line: String)] = []

  init(seed: UInt64) { self.random = SplitMix(seed: seed) }

  /// Writes finished files, their manifest and their views.
  mutating func write(to directory: String, fileCount: Int) throws {
    var manifest = ""
    for number in 0..<fileCount {
      let isLast = number == fileCount - 1
      let isSnapshot = !isLast && Int.random(in: 0..<3, using: &self.random) == 0
      if isSnapshot { self.pass += 1 }
      if !isSnapshot, Int.random(in: 0..<6, using: &self.random) == 0 {
        self.epoch += 1
        self.ordinal = 0
      }
      let first = self.ordinal
      let lines = isSnapshot ? self.reads() : self.changes(isLast: isLast)
      manifest += try self.writeFile(
        of: lines, to: directory, first: (self.epoch, first),
        pass: isSnapshot ? SegmentKey.Pass(number: self.pass, request: 1) : nil)
    }
    for letter in self.letters {
      manifest += try self.writeFile(
        of: [letter.line], to: directory, first: (letter.epoch, letter.ordinal), isRedriven: true)
    }
    try manifest.write(
      toFile: "\(directory)/_manifest.ndjson", atomically: false, encoding: .utf8)
  }

  /// - Returns: the file's line of the manifest, ended.
  func writeFile(
    of lines: [String], to directory: String, first: (epoch: Int, ordinal: Int64),
    pass: SegmentKey.Pass? = nil, isRedriven: Bool = false
  ) throws -> String {
    let name = SegmentName(
      kind: .records, pipeline: Self.pipeline,
      key: SegmentKey(
        topic: Self.topic, entity: Self.entity, day: 20_501, isExportDate: false, pass: pass,
        isRedriven: isRedriven),
      epoch: first.epoch, ordinal: first.ordinal)
    let frame = try SegmentLinesTests.frame(lines.map { $0 + "\n" }.joined())
    let path = "\(directory)/\(name.path)"
    try FileManager.default.createDirectory(
      atPath: "\(directory)/\(name.directory)", withIntermediateDirectories: true)
    try Data(frame).write(to: URL(fileURLWithPath: path))
    let snapshot: JSONValue = pass.map { ["pass": .integer($0.number)] } ?? nil
    let line: JSONValue = [
      "name": .string(name.path), "pipeline": .string(Self.pipeline), "org": "00D",
      "topic": .string(Self.topic), "entity": .string(Self.entity),
      "events": .integer(lines.count), "lines": .integer(lines.count),
      "bytes": .integer(frame.count), "epoch": .integer(first.epoch),
      "first_ordinal": .integer(first.ordinal),
      "last_ordinal": .integer(first.ordinal + Int64(lines.count) - 1),
      "first_replay_id": "00", "last_replay_id": "00", "sha256": .string(SHA256Hex.of(frame)),
      "snapshot": snapshot, "redriven": isRedriven ? true : nil,
    ]
    return line.text(.compact) + "\n"
  }

  private mutating func reads() -> [String] {
    (0..<Int.random(in: 1...25, using: &self.random)).map { _ in self.read() }
  }

  /// Behind an event that became a dead letter, lines tell their places. The last file has one, since
  /// later files cover what became of earlier letters.
  private mutating func changes(isLast: Bool) -> [String] {
    let count = isLast ? 40 : Int.random(in: 1...25, using: &self.random)
    let letter = Int.random(in: 1..<(isLast ? 5 : 50), using: &self.random)
    var lines: [String] = []
    for index in 0..<count {
      let (epoch, ordinal) = (self.epoch, self.ordinal)
      let line = self.change(tellsPlace: index >= letter)
      if index == letter {
        self.letters.append((epoch, ordinal, line))
      } else {
        lines.append(line)
      }
    }
    return lines
  }

  // MARK: Lines

  private mutating func pick<Value>(_ values: [Value]) -> Value {
    values[Int.random(in: 0..<values.count, using: &self.random)]
  }

  private mutating func record() -> String {
    "a0R00000000000\(Int.random(in: 10...24, using: &self.random))AAA"
  }

  /// Mostly later than the line before, by about as much as reads and changes may differ.
  private mutating func time() -> String {
    self.clock += Int64.random(in: -4...5, using: &self.random) * 1000
    return UTCTime.timestamp(milliseconds: self.clock)
  }

  private mutating func value() -> JSONValue {
    .string("v\(Int.random(in: 0..<1_000_000, using: &self.random))")
  }

  private mutating func change(tellsPlace: Bool) -> String {
    let type = self.pick(
      ["CREATE", "UPDATE", "UPDATE", "UPDATE", "UPDATE", "UPDATE", "DELETE", "UNDELETE"]
        + ["GAP_UPDATE", "GAP_CREATE", "GAP_DELETE", "GAP_UNDELETE"])
    let isGap = type.hasPrefix("GAP")
    var members = [
      JSONMember("_topic", .string(Self.topic)),
      JSONMember("_kind", isGap ? "gap" : "change"), JSONMember("_change_type", .string(type)),
      JSONMember("_record_id", .string(self.record())),
      JSONMember("_commit_timestamp", .string(self.time())),
    ]
    if tellsPlace {
      members += [
        JSONMember("_epoch", .integer(self.epoch)), JSONMember("_ordinal", .integer(self.ordinal)),
      ]
    }
    self.ordinal += 1
    var lists: [[JSONValue]] = [[], [], []]
    var values: [JSONMember] = []
    if !isGap, type != "DELETE" {
      for column in Self.columns {
        switch Int.random(in: 0..<(type == "UPDATE" ? 6 : 2), using: &self.random) {
        case 0:
          values.append(JSONMember(column, self.value()))
          lists[0].append(.string(column))
        case 1 where type == "UPDATE":
          values.append(JSONMember(column, nil))
          lists[1].append(.string(column))
        case 2:
          lists[2].append(.string(column))
          lists[0].append(.string(column))
          values.append(JSONMember(column, "--- a diff"))
        // Present, but not changed.
        case 3: values.append(JSONMember(column, "unchanged"))
        default: break
        }
      }
    }
    for (name, list) in zip(["_changed_fields", "_nulled_fields", "_diff_fields"], lists) {
      members.append(JSONMember(name, .array(list)))
    }
    return JSONValue(.object(members + values)).text(.compact)
  }

  private mutating func read() -> String {
    let isWhole = Int.random(in: 0..<3, using: &self.random) > 0
    let columns = isWhole ? Self.columns : self.pick([["A"], ["B", "C"], ["A", "C"], []])
    self.clock += 1
    let type = self.pick(
      ["SNAPSHOT", "SNAPSHOT", "SNAPSHOT_DELETE", "SNAPSHOT_REFRESH", "SNAPSHOT_REFRESH"])
    // A refresh reads records that no other line has.
    let isOutside = type == "SNAPSHOT_REFRESH" && Int.random(in: 0..<4, using: &self.random) == 0
    let id = isOutside ? "a0R00000000000009AAA" : self.record()
    var members = [
      JSONMember("_topic", .string(Self.topic)), JSONMember("_kind", "snapshot"),
      JSONMember("_change_type", .string(type)), JSONMember("_record_id", .string(id)),
    ]
    // What has left the copy has no values.
    let isMark = type == "SNAPSHOT_DELETE"
    if !isWhole, !isMark {
      members.append(
        JSONMember("_changed_fields", .array(columns.map { JSONValue(.string($0)) })))
    }
    members += [
      JSONMember("_system_modstamp", .string(self.time())),
      JSONMember("_read_at", .string(UTCTime.timestamp(milliseconds: self.clock + 60_000))),
      JSONMember("_epoch", .integer(self.epoch)),
    ]
    for column in columns where !isMark {
      members.append(JSONMember(column, self.pick([nil, self.value(), self.value()])))
    }
    return JSONValue(.object(members)).text(.compact)
  }
}
