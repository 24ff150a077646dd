import Cryptography
import FileSink
import Glibc
import JSON
import TestSupport
import Testing

@testable import PubSubETL

@Suite("Keys in pipeline files")
struct SealingConfigurationTests {
  private static let hex = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
  private static let oldHex = "101112131415161718191a1b1c1d1e1f000102030405060708090a0b0c0d0e0f"
  private static let environment = [
    "LETTER_KEY": Self.hex, "OLD_KEY": Self.oldHex, "SHORT_KEY": "abcdef", "NO_KEY": "",
  ]

  private func text(_ deadLetter: String) -> String {
    SamplePipeline.minimal.replacing(
      "\"checkpoint\":", with: "\"dead_letter\": \(deadLetter), \"checkpoint\":")
  }

  private func load(_ deadLetter: String) throws -> PipelineConfiguration {
    try SamplePipeline().load(self.text(deadLetter), environment: Self.environment)
  }

  @Test(
    "A key comes from a variable or from a file whose mode is checked like that of other secrets")
  func sources() throws {
    let key = try #require(SealingKey(text: Self.hex))
    let old = try #require(SealingKey(text: Self.oldHex))
    let variable = try self.load(
      #"{"payload":"sealed","key":"${LETTER_KEY}","old_keys":["${OLD_KEY}"]}"#)
    #expect(variable.deadLetter.payload == .sealed(key))
    #expect(variable.deadLetter.keys == [key, old])
    #expect(variable.secrets.redacted("a \(Self.hex) \(Self.oldHex)") == "a <redacted> <redacted>")
    let sample = try SamplePipeline()
    try sample.write(Self.hex + "\n", to: "letters.key")
    try sample.write(Self.oldHex + "\n", to: "old.key")
    for file in ["letters.key", "old.key"] {
      #expect(chmod("\(sample.base)/\(file)", 0o644) == 0)
    }
    let file = try sample.load(
      self.text(
        #"{"payload":"sealed","key_file":"letters.key","old_keys":["${file:old.key}"]}"#))
    #expect(file.deadLetter.payload == .sealed(key) && file.deadLetter.keys == [key, old])
    #expect(file.secrets.redacted(Self.hex) == "<redacted>")
    for name in ["letters.key", "old.key"] {
      #expect(
        file.securityWarnings.contains { $0.hasPrefix("\(sample.base)/\(name) holds a secret") })
    }
  }

  @Test("A key may remain for old letters when new ones are not sealed")
  func keyWithoutSealing() throws {
    let letters = try self.load(#"{"key":"${LETTER_KEY}"}"#).deadLetter
    #expect(letters.payload == .full && letters.keys.count == 1)
  }

  @Test(
    "A key that is missing, wrong or literal is refused, and the error does not quote it",
    arguments: [
      (#"{"payload":"sealed"}"#, "/dead_letter/payload: sealed needs a key"),
      (#"{"payload":"sealed","key":"${NO_KEY}"}"#, "/dead_letter/key: must not be empty"),
      (
        #"{"payload":"sealed","key":"${SHORT_KEY}"}"#,
        "/dead_letter/key: the value is not a key of 32"
      ),
      (
        #"{"payload":"sealed","key":"\#(Self.hex)"}"#, "/dead_letter/key: a key is not written into"
      ),
      (#"{"old_keys":["\#(Self.hex)"]}"#, "/dead_letter/old_keys: a key is not written into"),
      (#"{"old_keys":["${SHORT_KEY}"]}"#, "/dead_letter/old_keys: element 0 is not a key of 32"),
      (#"{"old_keys":[7]}"#, "/dead_letter/old_keys: a key is not written into"),
      (#"{"key":"${LETTER_KEY}","key_file":"k"}"#, "/dead_letter/key_file: either key_file or key"),
      (#"{"key_file":"nowhere"}"#, "/dead_letter/key_file: the file"),
      (#"{"key":"${UNSET_KEY}"}"#, "/dead_letter/key: environment variable UNSET_KEY is not set"),
    ])
  func mistakes(deadLetter: String, expected: String) throws {
    let mistakes = try SamplePipeline().mistakes(
      self.text(deadLetter), environment: Self.environment)
    #expect(mistakes.contains { $0.contains(expected) }, "\(mistakes)")
    #expect(!mistakes.contains { $0.contains(Self.hex) || $0.contains("abcdef") })
  }

  @Test("A key is refused on the command line, which others can read")
  func commandLine() {
    for path in ["dead_letter.key=\(Self.hex)", "dead_letter.old_keys=[\"\(Self.hex)\"]"] {
      let error = #expect(throws: ConfigurationOverride.ParseError.self) {
        try ConfigurationOverride(path)
      }
      #expect(error?.description.contains(Self.hex) == false)
    }
  }
}
