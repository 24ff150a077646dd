import JSON
import Testing

@Suite("Keys of objects")
struct KeyTests {
  private enum Color: String, CaseIterable { case red, blue }

  private struct Shelf: KeyedObject {
    var name = ""
    var count = 3
    var wait = Duration.seconds(60)
    var color: Color?
    var depth = 16 << 20

    static var keys: [Key<Self>] {
      [
        .required("name", \.name, .text, "Name of the shelf.", example: "a"),
        .key("count", \.count, .integer(in: 1...10), "Books.", example: 5),
        .group(
          "times",
          [
            .key(
              "wait", \.wait, .duration(in: .seconds(1) ... .seconds(3600)), "Pause.",
              example: "5s")
          ], "Times."),
        .key("color", \.color, .choice(), "Color."),
        .key("depth", \.depth, .byteCount(in: 1024...1 << 30), "Depth.", example: "1MiB"),
      ]
    }

    func check(_ reader: JSONReader) {
      if self.name == "\(self.count)" { reader.report("name", "is a number") }
    }
  }

  private func read(_ text: String) throws -> (shelf: Shelf?, mistakes: [String]) {
    let mistakes = JSONMistakes()
    let reader = JSONReader(try JSONValue(parsing: text), mistakes: mistakes)
    return (reader.read(), mistakes.inTextOrder.map(\.description))
  }

  @Test("What is missing has its default, also in a group")
  func defaults() throws {
    let (shelf, mistakes) = try self.read(#"{"name": "x", "times": {"wait": "2m"}}"#)
    #expect(mistakes == [])
    #expect(shelf?.name == "x" && shelf?.count == 3 && shelf?.color == nil)
    #expect(shelf?.wait == .seconds(120))
  }

  @Test("All mistakes are reported, those of single keys, of keys together, and unknown keys")
  func mistakes() throws {
    let (shelf, mistakes) = try self.read(
      #"{"count": 11, "times": {"wiat": "2m"}, "depth": 1, "color": "rde"}"#)
    #expect(shelf == nil)
    #expect(
      mistakes == [
        "/times/wiat: unknown key; did you mean 'wait'?; known: wait",
        "/name: is required", "/count: expected an integer from 1 to 10, found 11",
        "/depth: must be at least 1KiB",
        "/color: unknown value 'rde'; did you mean 'red'?; known: red, blue",
      ])
    #expect(try self.read(#"{"name": "3"}"#).mistakes == ["/name: is a number"])
  }

  @Test("The schema has the type, range, default and example of each key")
  func schema() {
    let schema = JSONSchema.object(Shelf.declarations).value
    #expect(schema["required"] == ["name"])
    let properties = schema["properties"]
    #expect(
      properties?["count"] == [
        "description": "Books.",
        "oneOf": [
          ["type": "integer", "minimum": 1, "maximum": 10], ["$ref": "#/definitions/variable"],
        ], "default": 3, "examples": [5],
      ])
    let wait = properties?["times"]?["properties"]?["wait"]
    #expect(wait?["description"] == "Pause. 1s to 1h.")
    #expect(wait?["default"] == "1m")
    #expect(properties?["color"]?["examples"] == ["red"])
    #expect(properties?["color"]?["default"] == nil)
    #expect(properties?["depth"]?["default"] == "16MiB")
  }
}
