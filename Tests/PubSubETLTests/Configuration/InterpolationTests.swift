import JSON
import TestSupport
import Testing

@testable import PubSubETL

@Suite("Interpolation")
struct InterpolationTests {
  private func interpolate(
    _ value: JSONValue, base: String = "/nowhere"
  ) -> (value: JSONValue, mistakes: [String]) {
    let mistakes = JSONMistakes()
    let interpolation = Interpolation(
      environment: Environment(["NAME": "value", "EMPTY": "", "_N1": "42", "NEST": "${NAME}"]),
      base: base, mistakes: mistakes, secretFiles: SecretFiles())
    let result = interpolation.interpolate(value)
    return (result, mistakes.all.map(\.description))
  }

  @Test(
    "Variables are replaced in strings",
    arguments: [
      ("${NAME}", "value"), ("a-${NAME}-b", "a-value-b"), ("${NAME}${_N1}", "value42"),
      ("${NONE:-fallback}", "fallback"), ("${NONE:-}", ""), ("${EMPTY:-x}", "x"), ("${EMPTY}", ""),
      ("${NAME:-x}", "value"), ("${NONE:-https://h:7443}", "https://h:7443"),
      ("${NONE:-a:-b}", "a:-b"), ("$${NAME}", "${NAME}"), ("$$${NAME}", "$${NAME}"),
      ("$NAME $5 $", "$NAME $5 $"), ("plain", "plain"), ("${NEST}", "${NAME}"),
      ("é${NAME}é", "évalueé"),
    ])
  func replaces(text: String, expected: String) {
    let result = self.interpolate(.string(text))
    #expect(result.mistakes == [])
    #expect(result.value == .string(expected))
  }

  @Test("A string that is one variable may become a number, and other strings may not")
  func substituted() {
    #expect(self.interpolate("${_N1}").value.isSubstituted)
    #expect(self.interpolate("${NONE:-7}").value.isSubstituted)
    for text in ["x${_N1}", "${_N1}x", "${_N1}${_N1}", "42", "$${_N1}", "$"] {
      #expect(!self.interpolate(.string(text)).value.isSubstituted, "\(text)")
    }
    let reader = JSONReader(self.interpolate(["n": "${_N1}"]).value, mistakes: JSONMistakes())
    #expect(reader.integer("n") == 42)
  }

  @Test("Every unset variable is named with its path")
  func unset() {
    let result = self.interpolate([
      "a": ["${ONE}", "x"], "b/c": ["d": "${TWO} ${NAME}"], "//": "${COMMENT}", "n": 1,
    ])
    #expect(
      result.mistakes == [
        "/a/0: environment variable ONE is not set",
        "/b~1c/d: environment variable TWO is not set",
      ])
    #expect(result.value["//"]?.string == "${COMMENT}")
  }

  @Test(
    "An unclosed or empty reference is a mistake",
    arguments: [
      ("${NAME", "'${' is not closed by '}'; write '$${' for a literal '${'"),
      ("${}", "'${}' does not name a variable; write ${NAME}, ${NAME:-default} or ${file:/path}"),
      (
        "${1A}",
        "'${1A}' does not name a variable; write ${NAME}, ${NAME:-default} or ${file:/path}"
      ),
      (
        "${A B}",
        "'${A B}' does not name a variable; write ${NAME}, ${NAME:-default} or ${file:/path}"
      ),
      ("${X:-${NAME}}", "the default of ${X} cannot contain another variable"),
      ("${file:}", "'${file:}' does not name a file"),
      (
        "${file:~/x}",
        "${file:…}: only a shell replaces '~' and '$HOME' in a path; write the absolute path"
      ),
      (
        "${file:${NAME}/x}",
        "the path in ${file:…} cannot contain a variable; write the path itself"
      ),
      ("${file:a\0b}", "${file:…}: a path cannot contain U+0000"),
      ("${file:gone}", "the file /nowhere/gone cannot be read: No such file or directory"),
    ])
  func malformed(text: String, message: String) {
    #expect(self.interpolate(["k": .string(text)]).mistakes == ["/k: \(message)"])
  }

  @Test("A file's content is inserted without one final line end")
  func files() throws {
    let sample = try SamplePipeline()
    try sample.write("line\n\n", to: "two")
    try sample.write("windows\r\n", to: "crlf")
    try sample.write("", to: "empty")
    func content(_ name: String) -> String? {
      self.interpolate(.string("<${file:\(name)}>"), base: sample.base).value.string
    }
    #expect(content("two") == "<line\n>")
    #expect(content("crlf") == "<windows>")
    #expect(content("empty") == "<>")
    #expect(content("\(sample.base)/crlf") == "<windows>")
  }
}
