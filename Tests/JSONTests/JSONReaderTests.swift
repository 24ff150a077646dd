import JSON
import Testing

@Suite("JSONReader")
struct JSONReaderTests {
  private enum Naming: String, CaseIterable { case path, sobject }

  private func mistakes(
    _ text: String, _ read: (JSONReader) -> Void
  ) throws -> [String] {
    let mistakes = JSONMistakes()
    let reader = JSONReader(try JSONValue(parsing: text), mistakes: mistakes)
    read(reader)
    reader.finish()
    return mistakes.inTextOrder.map {
      "\($0.position.line):\($0.position.column) \($0)"
    }
  }

  @Test("Members are read by type, and absent ones are nil and not a mistake")
  func values() throws {
    let found = try self.mistakes(
      #"""
      {"//": "a comment", "s": "x", "b": false, "i": 7, "z": "64kB", "n": 12, "d": "1h30m",
       "c": "sobject", "o": {"k": 1}, "a": [{"k": 2}, {"k": 3}], "l": ["p", "q"]}
      """#
    ) { reader in
      #expect(reader.string("s") == "x")
      #expect(reader.bool("b") == false)
      #expect(reader.integer("i", in: 1...7) == 7)
      #expect(reader.byteCount("z") == 64000)
      #expect(reader.byteCount("n") == 12)
      #expect(reader.duration("d") == .seconds(5400))
      #expect(reader.choice("c", of: Naming.self) == .sobject)
      let object = reader.object("o")
      #expect(object?.path == "/o")
      #expect(object?.integer("k") == 1)
      object?.finish()
      let objects = reader.objects("a") ?? []
      #expect(objects.map { $0.integer("k") } == [2, 3])
      #expect(objects.map(\.path) == ["/a/0", "/a/1"])
      for object in objects { object.finish() }
      #expect(reader.strings("l") == ["p", "q"])
      #expect(reader.string("none") == nil)
      #expect(reader.object("none") == nil)
    }
    #expect(found == [])
  }

  @Test("Every mistake is collected with place, path and choices")
  func collects() throws {
    let found = try self.mistakes(
      #"""
      {
        "nmae": "x",
        "num": 101,
        "flag": "yes",
        "size": "12 MiB",
        "wait": 15,
        "naming": "pth",
        "sinks": [ { "type": "kafka" }, 5 ],
        "stages": {},
        "a/b~c": 1,
        "zero": "1ms",
        "nothing": null
      }
      """#
    ) { reader in
      #expect(reader.string("name", required: true) == nil)
      #expect(reader.integer("num", in: 1...100) == nil)
      #expect(reader.bool("flag") == nil)
      #expect(reader.byteCount("size") == nil)
      #expect(reader.duration("wait") == nil)
      #expect(reader.choice("naming", of: Naming.self, called: "naming") == nil)
      for sink in reader.objects("sinks") ?? [] {
        if let type = sink.string("type", required: true) {
          sink.reportUnknown("type", type, called: "sink", known: ["files"])
        }
        sink.finish()
      }
      #expect(reader.objects("stages") == nil)
      #expect(reader.duration("zero", in: .seconds(1) ... .seconds(90)) == nil)
      #expect(reader.string("nothing") == nil)
    }
    #expect(
      found == [
        "2:3 /nmae: unknown key; did you mean 'name'?; known: name, num, flag, size, wait, naming, sinks, stages, zero, nothing",
        "1:1 /name: is required",
        "3:10 /num: expected an integer from 1 to 100, found 101",
        "4:11 /flag: expected true or false, found a string",
        "5:11 /size: expected a number of bytes such as \"128MiB\", without spaces; did you mean \"12MiB\"?; units: B, kB, MB, GB, KiB, MiB, GiB",
        "6:11 /wait: expected a duration such as \"15s\", \"500ms\" or \"1h30m\"; a number needs a unit: ms, s, m, h, d",
        "7:13 /naming: unknown naming 'pth'; did you mean 'path'?; known: path, sobject",
        "8:24 /sinks/0/type: unknown sink 'kafka'; known: files",
        "8:35 /sinks/1: expected an object, found a number",
        "9:13 /stages: expected an array, found an object",
        "10:3 /a~1b~0c: unknown key; known: name, num, flag, size, wait, naming, sinks, stages, zero, nothing",
        "11:11 /zero: must be at least 1s",
        "12:14 /nothing: expected a string, found null",
      ])
  }

  @Test("A document that is not an object is one mistake, however many members are read")
  func notAnObject() throws {
    let found = try self.mistakes("[1]") { reader in
      #expect(reader.string("name", required: true) == nil)
      #expect(reader.object("source", required: true) == nil)
    }
    #expect(found == ["1:1 expected an object, found an array"])
  }

  @Test("A substituted string may be a number or boolean, and a literal one may not")
  func substituted() throws {
    func value(_ text: String) -> JSONValue {
      var value = JSONValue.string(text)
      value.isSubstituted = true
      return value
    }
    let mistakes = JSONMistakes()
    let reader = JSONReader(
      [
        "n": value("42"), "b": value("true"), "s": value("17"), "x": value("a secret"),
        "y": value("a secret"), "w": "42",
      ],
      mistakes: mistakes)
    #expect(reader.integer("n") == 42)
    #expect(reader.bool("b") == true)
    #expect(reader.string("s") == "17")
    #expect(mistakes.isEmpty)
    #expect(reader.integer("x") == nil)
    #expect(reader.bool("y") == nil)
    #expect(reader.integer("w") == nil)
    #expect(
      mistakes.all.map(\.description) == [
        "/x: expected an integer, the variable has another value",
        "/y: the variable's value is neither true nor false",
        "/w: expected an integer, found a string",
      ])
  }

  @Test(
    "A text whose meaning is clear gets the right spelling",
    arguments: [
      ("size", "128 MB", "128MB"), ("size", "128mib", "128MiB"), ("size", "64 kilobytes", "64kB"),
      ("size", "12 parsecs", nil), ("size", "1.5 GB", nil), ("wait", "10 minutes", "10m"),
      ("wait", "1 hour 30 min", "1h30m"), ("wait", "500 MS", "500ms"), ("wait", "1 week", nil),
      ("wait", "30 s 1 h", nil),
    ] as [(String, String, String?)])
  func spelling(name: String, text: String, right: String?) throws {
    let mistakes = JSONMistakes()
    let value = JSONValue(.object([JSONMember(name, .string(text))]))
    let reader = JSONReader(value, mistakes: mistakes)
    if name == "size" { _ = reader.byteCount(name) } else { _ = reader.duration(name) }
    let message = try #require(mistakes.all.first?.message)
    #expect(message.contains(", without spaces") == text.contains(" "))
    #expect(message.contains("did you mean") == (right != nil))
    if let right { #expect(message.contains("did you mean \"\(right)\"?")) }
  }

  @Test("A misspelled key comes before the mistakes that follow from it")
  func misspelled() throws {
    let mistakes = JSONMistakes()
    let document = try JSONValue(parsing: "{ \"zzz\": 1,\n \"b\": 1,\n \"colums\": [] }")
    let reader = JSONReader(document, mistakes: mistakes)
    _ = reader.strings("columns", required: true)
    _ = reader.string("b")
    reader.finish()
    #expect(mistakes.inTextOrder.map(\.path) == ["/colums", "/columns", "/zzz", "/b"])
  }

  @Test(
    "Durations are read with their units",
    arguments: [
      ("0", .zero), ("0s", .zero), ("500ms", .milliseconds(500)), ("15s", .seconds(15)),
      ("10m", .seconds(600)), ("1h", .seconds(3600)), ("3d", .seconds(259_200)),
      ("1h30m", .seconds(5400)), ("1s500ms", .milliseconds(1500)), ("", nil), ("s", nil),
      ("1", nil), ("-1s", nil), ("1 s", nil), ("1.5s", nil), ("1m1h", nil), ("1s1s", nil),
      ("1y", nil), ("99999999999999999d", nil), ("1S", nil), ("٣s", nil),
    ] as [(String, Duration?)])
  func durations(text: String, expected: Duration?) {
    #expect(JSONReader.duration(text) == expected)
  }

  @Test(
    "Byte counts are read with their units",
    arguments: [
      ("0", 0), ("17", 17), ("17B", 17), ("1kB", 1000), ("2MB", 2_000_000), ("3KiB", 3072),
      ("128MiB", 134_217_728), ("1GiB", 1_073_741_824), ("", nil), ("MiB", nil), ("-1", nil),
      ("1.5MiB", nil), ("1 MiB", nil), ("1mb", nil), ("9223372036854775807GiB", nil),
    ] as [(String, Int?)])
  func byteCounts(text: String, expected: Int?) {
    #expect(JSONReader.byteCount(text) == expected)
  }

  @Test("A message lists as many words as fit, and how many more there are")
  func listings() {
    #expect(listing([String]()) == "")
    #expect(listing(["a", "b"]) == "a, b")
    let words = (1...1000).map { "word\($0)" }
    #expect(listing(words).hasPrefix("word1, word2, "))
    #expect(listing(words).hasSuffix(" more"))
    #expect(listing(words).utf8.count < 520)
    #expect(listing([String(repeating: "x", count: 600), "b"]) == "2 more")
  }

  @Test("The intended word is found among words of other lengths")
  func nearWords() {
    let known = ["a", "name", "StageName", String(repeating: "name", count: 20)]
    #expect(nearest(to: "StagName", among: known) == "StageName")
    #expect(nearest(to: "nam", among: known) == "name")
    #expect(nearest(to: "b", among: known) == "a")
    #expect(nearest(to: "quantity", among: known) == nil)
  }
}
