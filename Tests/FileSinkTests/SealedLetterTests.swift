import Bytes
import Cryptography
import DurableFiles
import JSON
import Pipeline
import TestSupport
import Testing

@testable import FileSink

@Suite("Sealed dead letters")
struct SealedLetterTests {
  private let key: SealingKey
  private let other: SealingKey

  init() throws {
    self.key = try #require(SealingKey(Array(0..<32)))
    self.other = try #require(SealingKey(Array(1...32)))
  }

  private func letter(_ number: Int, payload: [UInt8], text: String = "s") -> DeadLetter {
    DeadLetter(
      topic: "/data/OpportunityChangeEvent", replayID: ReplayID([0x72, UInt8(number)]),
      eventID: "e\(number)\(text)", schemaID: text, payload: payload, reason: "r", epoch: 1,
      ordinal: Int64(number))
  }

  /// The lines of the letters, as the next run finds them.
  private func lines(_ letters: [DeadLetter]) throws -> [JSONValue] {
    let fileSystem = ModelFileSystem()
    func file() -> DeadLetterFile {
      DeadLetterFile(
        directory: "/dead", pipeline: "opps", org: "00D", payload: .sealed(self.key),
        fileSystem: fileSystem, clock: TestClock().sinkClock)
    }
    let dead = file()
    try dead.recover(from: nil)
    for letter in letters { try dead.append(letter) }
    let state = try dead.flush(finish: true)
    fileSystem.kill()
    try file().recover(from: try JSONValue(parsing: state.text()))
    let path = try #require(fileSystem.files.keys.first(where: { $0.hasSuffix(".ndjson.zst") }))
    return try Decompression.lines(of: try #require(fileSystem.files[path])).map {
      try JSONValue(parsing: $0)
    }
  }

  @Test("The next run can read any sealed payload, and the line shows nothing of it")
  func roundTrips() throws {
    let canary = Array("Anna Berg".utf8)
    var generator = SystemRandomNumberGenerator()
    let texts = ["", "\"\\\u{1}\n", "e\u{301}", "😀", String(repeating: "x", count: 1024), "\0"]
    let letters = (0..<60).map { number in
      let noise = (0..<number * number).map { _ in UInt8.random(in: 0...255, using: &generator) }
      return self.letter(number, payload: canary + noise, text: texts[number % texts.count])
    }
    let lines = try self.lines(letters)
    #expect(lines.count == letters.count)
    for (line, letter) in zip(lines, letters) {
      #expect(line["payload"] == nil && line["key_id"]?.string == self.key.id)
      #expect(!line.text().contains(canary.base64.prefix(11)))
      let stored = try #require(StoredDeadLetter(json: line))
      #expect(stored.hasPayload && stored.payloadByteCount == letter.payload.count)
      #expect(stored.letter.payload.isEmpty)
      for keys in [[self.key], [self.other, self.key]] {
        let opened = try stored.opened(with: keys)
        #expect(opened.letter == letter && opened.sealed == nil)
        #expect(opened.json["payload"]?.string == letter.payload.base64)
        #expect(opened.json["sealed"] == nil && opened.json["key_id"] == nil)
        #expect(StoredDeadLetter(json: opened.json)?.letter == letter)
      }
    }
  }

  @Test("A line whose payload was changed by an erasure is sealed as before, and reads back")
  func changedPayload() throws {
    let letter = self.letter(1, payload: Array("about Anna and Bo".utf8))
    let others = Array("about Bo".utf8)
    let line = try #require(try self.lines([letter]).first)
    let stored = try #require(StoredDeadLetter(json: line))
    func edited(_ payload: [UInt8]?) throws -> StoredDeadLetter {
      let members = stored.members(ofPayload: payload, keys: [self.other, self.key])
      let editor = LetterEditor([DeadLetterLedger.Key(stored): members])
      let edited = try Array(line.text(.compact).utf8).withUnsafeBufferPointer {
        try editor.edited($0, number: 1)
      }
      let text = try #require(edited)
      let json = try JSONValue(parsing: text)
      return try #require(StoredDeadLetter(json: json))
    }
    let changed = try edited(others)
    #expect(changed.sealed?.keyID == self.key.id && changed.json["payload"] == nil)
    let opened = try changed.opened(with: [self.key])
    var expected = letter
    expected.payload = others
    #expect(opened.letter == expected)
    let cleared = try edited(nil)
    #expect(!cleared.hasPayload && cleared.sealed == nil && cleared.id == stored.id)
  }

  @Test("A letter cannot be opened without its key, and the error names the key")
  func otherKeys() throws {
    let line = try #require(try self.lines([self.letter(1, payload: [1, 2, 3])]).first)
    let stored = try #require(StoredDeadLetter(json: line))
    for keys in [[], [self.other]] {
      let error = #expect(throws: SealedPayloadError.self) { try stored.opened(with: keys) }
      let said = try #require(error?.description)
      #expect(said.contains("sealed with key \(self.key.id)"))
      #expect(said.contains(keys.isEmpty ? "dead_letter.key_file" : "dead_letter.old_keys"))
    }
  }

  @Test("A sealed payload that was truncated, changed or moved to another line is refused")
  func hostile() throws {
    let lines = try self.lines([
      self.letter(1, payload: Array("Anna".utf8)), self.letter(2, payload: Array("Bert".utf8)),
    ])
    let sealed = try #require(lines[0]["sealed"]?.string.flatMap { [UInt8](base64: $0) })
    func line(_ bytes: [UInt8], _ changes: [String: JSONValue] = [:]) -> JSONValue {
      JSONValue(
        .object(
          (lines[0].members ?? []).map { member in
            let value = member.name == "sealed" ? .string(bytes.base64) : member.value
            return JSONMember(member.name, changes[member.name] ?? value)
          }))
    }
    func expectRefused(_ line: JSONValue, _ what: Comment) throws {
      // A line that cannot be a letter at all is reported with its file and number.
      guard let stored = StoredDeadLetter(json: line) else { return }
      let error = #expect(throws: SealedPayloadError.self, what) {
        try stored.opened(with: [self.key])
      }
      #expect(error?.description.contains(self.key.id) == true)
    }
    _ = try #require(StoredDeadLetter(json: line(sealed))).opened(with: [self.key])
    for index in sealed.indices {
      try expectRefused(line(Array(sealed[..<index])), "cut at \(index)")
      for bit in 0..<8 {
        var changed = sealed
        changed[index] ^= 1 << UInt8(bit)
        try expectRefused(line(changed), "bit \(bit) of byte \(index)")
      }
    }
    let other = try #require(lines[1]["sealed"]?.string.flatMap { [UInt8](base64: $0) })
    try expectRefused(line(other), "the payload of another line")
    let changes: [(String, JSONValue)] = [
      ("topic", "/data/AccountChangeEvent"), ("epoch", 2), ("ordinal", 2), ("schema_id", "t"),
      ("replay_id", "7202"), ("event_id", "e2s"),
    ]
    for (name, value) in changes { try expectRefused(line(sealed, [name: value]), "\(name)") }
    #expect(StoredDeadLetter(json: line([1, 2, 3])) == nil)
    #expect(StoredDeadLetter(json: line(sealed, ["key_id": 7])) == nil)
    #expect(StoredDeadLetter(json: line(sealed, ["sealed": "no base64"])) == nil)
  }
}
