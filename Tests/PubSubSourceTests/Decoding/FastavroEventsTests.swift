import Avro
import Foundation
import JSON
import Pipeline
import Testing

@testable import PubSubSource

/// Random change events of Python's fastavro, with rows that a second reading of the rules expects.
@Suite("Events from fastavro") struct FastavroEventsTests {
  private static let script = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    .appending(path: "Fixtures/change_events.py")

  @Test("Decoded rows equal those of an independent implementation", arguments: [1, 2])
  func rows(seed: Int) throws {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = ["python3", Self.script.path, "\(seed)", "25", "40"]
    let output = Foundation.Pipe()
    process.standardOutput = output
    try process.run()
    let lines = output.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    try #require(process.terminationStatus == 0)

    var rows = 0
    for line in lines.split(separator: UInt8(ascii: "\n")) {
      let entry = try JSONValue(parsing: Array(line))
      let decoder = try AvroEventDecoderTests.decoder(try #require(entry["schema"]?.string))
      let batch = RecordBatch(layout: decoder.layout)
      for event in entry["events"]?.array ?? [] {
        let first = batch.rowCount
        try decoder.decode(try bytes(of: try #require(event["payload"]?.string)), into: batch)
        let expected = try #require(event["rows"]?.array)
        #expect(batch.rowCount - first == expected.count)
        for (offset, row) in expected.enumerated() {
          var texts = batch.texts(row: first + offset)
          for name in [
            "_topic", "_replay_id", "_event_id", "_schema_id", "_entity", "_commit_timestamp",
            "_commit_user", "_transaction_key", "_sequence_number", "_change_origin",
          ] {
            #expect(texts.removeValue(forKey: name) != nil)
          }
          let members = try #require(row.members)
          #expect(
            texts
              == Dictionary(uniqueKeysWithValues: members.map { ($0.name, $0.value.string ?? "") }))
          rows += 1
        }
      }
      #expect(batch.events.count == 40)
    }
    #expect(rows > 1000)
  }

  private func bytes(of hexadecimal: String) throws -> [UInt8] {
    let digits = Array(hexadecimal.utf8)
    return try stride(from: 0, to: digits.count, by: 2).map { index in
      try #require(UInt8(String(decoding: digits[index...index + 1], as: UTF8.self), radix: 16))
    }
  }
}
