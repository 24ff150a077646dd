import Testing

/// The convention that CONTRIBUTING.md states under "Names of tests".
@Suite("Names of tests")
struct TestNamesTests {
  @Test("Every test and every suite has a display name")
  func everyTest() throws {
    var count = 0
    for file in try RepositoryPages.files(in: ["Tests"], suffixes: [".swift"]) {
      let names = Self.names(in: try RepositoryPages.text(file))
      count += names.count
      for name in names {
        guard let problem = name.problem else { continue }
        Issue.record("\(file):\(name.line): \(problem)")
      }
      #expect(
        names.contains { $0.kind == "@Suite" } || !names.contains { $0.kind == "@Test" },
        "\(file): the suite has no @Suite with a display name")
    }
    #expect(count > 1500)
  }

  @Test(
    "Missing, empty and split names and full stops are found",
    arguments: [
      ("@Test(\"A topic has a name\") func name() {}", false),
      ("@Test(\n  \"A topic has a name\",\n  arguments: [1])\nfunc name(_: Int) {}", false),
      ("@Suite(\"Topics\", .serialized) struct TopicTests {}", false),
      ("let text = \"@Test func name() {}\"", false), ("/// @Test", false),
      ("@TestFixture struct Fixture {}", false),
      ("@Test func aTopicHasAName() {}", true), ("@Test\nfunc aTopicHasAName() {}", true),
      ("@Test(arguments: [\"one\"]) func name(_: String) {}", true),
      ("@Test(\n  arguments: [1])\nfunc name(_: Int) {}", true),
      ("@Suite struct TopicTests {}", true), ("@Suite(.serialized) struct TopicTests {}", true),
      ("@Test(\"\") func name() {}", true), ("@Test(\"A topic has a name.\") func name() {}", true),
      ("@Test(\n  \"\"\"\n  A topic has a name\n  \"\"\")\nfunc name() {}", true),
    ])
  func rule(text: String, isMistake: Bool) {
    #expect(Self.names(in: text).contains { $0.problem != nil } == isMistake)
  }

  /// An attribute of a test or a suite.
  private struct Name {
    var kind: String
    var line: Int
    /// What is wrong with the display name.
    var problem: String?
  }

  private static func names(in text: String) -> [Name] {
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    return lines.indices.compactMap { index in
      guard lines[index].first(where: { $0 != " " }) == "@",
        let attribute = lines[index].firstMatch(of: /^ *(@Test|@Suite)\b(\(?) */)
      else { return nil }
      // Behind the parenthesis, or at the beginning of the next line.
      var rest = lines[index][attribute.range.upperBound...]
      if rest.isEmpty, index + 1 < lines.count { rest = lines[index + 1].drop { $0 == " " } }
      var name = Name(kind: String(attribute.output.1), line: index + 1)
      if attribute.output.2.isEmpty || rest.first != "\"" {
        name.problem = "\(name.kind) has no display name"
      } else if let literal = rest.firstMatch(of: /^"((?:[^"\\]|\\.)+)"/) {
        if literal.output.1.hasSuffix(".") { name.problem = "a display name has no full stop" }
      } else {
        name.problem = "a display name is one literal on one line"
      }
      return name
    }
  }
}
