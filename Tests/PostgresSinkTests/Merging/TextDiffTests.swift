import Cryptography
import TestSupport
import Testing

@testable import PostgresSink

@Suite("Text diffs") struct TextDiffTests {
  static func hash(_ text: String) -> String { SHA256.hash(of: Array(text.utf8)).hex }

  static func apply(_ diff: String, to previous: String) -> String? {
    let diff = Array(diff.utf8)
    let previous = Array(previous.utf8)
    let result = diff.withUnsafeBufferPointer { diff in
      previous.withUnsafeBufferPointer { TextDiff.apply(diff, to: $0) }
    }
    return result.map { String(decoding: $0, as: UTF8.self) }
  }

  static func text(_ lines: [String], _ lineBreak: String) -> String {
    lines.joined(separator: lineBreak)
  }

  static let oldLines = (1...7).map { "line \($0)" }
  static let newLines = oldLines.map { ["line 2": "two", "line 7": "seven"][$0] ?? $0 }
  static let hunks = "@@ -2,1 +2,1 @@\n-line 2\n+two\n@@ -7,1 +7,1 @@\n-line 7\n+seven"

  @Test(
    "Two lines of seven are replaced, whatever their line breaks",
    arguments: ["\n", "\r\n"], ["\n", "\r\n"])
  func publishedShape(old: String, new: String) {
    let expected = Self.text(Self.newLines, new)
    let diff = "--- \n+++ \(Self.hash(expected))\n\(Self.hunks)"
    #expect(Self.apply(diff, to: Self.text(Self.oldLines, old)) == expected)
    #expect(Self.apply(diff + "\n", to: Self.text(Self.oldLines, old)) == expected)
  }

  @Test("Each line of a mixed text keeps its own line break")
  func mixedLineBreaks() {
    let old = "one\r\ntwo\nthree\r\nfour\n"
    let expected = "one\r\nTWO\nTHREE\r\nfour\n"
    let diff =
      "--- \n+++ \(Self.hash(expected))\n@@ -2,2 +2,2 @@\n-two\n-three\n+TWO\n+THREE\r\n"
    #expect(Self.apply(diff, to: old) == expected)
  }

  @Test(
    "Lines are added and removed anywhere",
    arguments: [
      ("@@ -0,0 +1,2 @@\n+x\n+y", "x\ny\na\nb\nc"), ("@@ -3,0 +4,1 @@\n+x", "a\nb\nc\nx"),
      ("@@ -1,0 +2 @@\n+x", "a\nx\nb\nc"), ("@@ -1 +0,0 @@\n-a", "b\nc"),
      ("@@ -2,2 +1,0 @@\n-b\n-c", "a"), ("@@ -1,3 +1 @@\n-a\n-b\n-c\n+x", "x"),
      ("@@ -3 +3 @@\n-c\n+c\n\\ No newline at end of file", "a\nb\nc"),
      ("@@ -3 +3,2 @@\n-c\n+c\n+", "a\nb\nc\n"), ("", "a\nb\nc"),
      ("@@ -1,3 +1,3 @@\n a\n-b\n+x\n c", "a\nx\nc"),
    ])
  func edits(hunks: String, expected: String) {
    let diff = "--- \n+++ \(Self.hash(expected))\n\(hunks)"
    #expect(Self.apply(diff, to: "a\nb\nc") == expected)
  }

  @Test(
    "A diff that is malformed or does not fit gives nothing",
    arguments: [
      "@@ -2 +2 @@\n-not b\n+x", "@@ -2 +2 @@\n-b", "@@ -9 +9 @@\n-b\n+x",
      "@@ -2,9 +2 @@\n-b\n+x", "@@ -0,1 +1 @@\n-b\n+x", "@@ -2 +2\n-b\n+x", "@@ - + @@",
      "@@ -2 +2 @@\n-b\n+x\n@@ -1 +1 @@\n-a\n+y", "nonsense", "@@ -2 +2 @@\nb\nx",
      "@@ -99999999999999999999 +2 @@\n-b\n+x", "@@ -2,0 +2,999999999 @@\n+x",
      "@@ -2 +2 @@\n-b\n+other",
    ])
  func misfits(hunks: String) {
    let diff = "--- \n+++ \(Self.hash("a\nx\nc"))\n\(hunks)"
    #expect(Self.apply(diff, to: "a\nb\nc") == nil)
  }

  @Test(
    "A diff without its two header lines gives nothing",
    arguments: ["", "--- ", "--- \n", "--- \n+++ ", "--- \n+++ abc\n", "+++ \n--- \n"])
  func headers(diff: String) { #expect(Self.apply(diff, to: "a") == nil) }

  @Test(
    "A diff that is truncated anywhere or has a changed byte gives nothing or the announced value")
  func hostile() {
    let old = Self.text(Self.oldLines, "\r\n")
    let expected = Self.text(Self.newLines, "\r\n")
    let diff = Array("--- \n+++ \(Self.hash(expected))\n\(Self.hunks)".utf8)
    for count in 0..<diff.count {
      let cut = String(decoding: diff[..<count], as: UTF8.self)
      #expect(Self.apply(cut, to: old) == nil)
      for byte in [0, 0x0A, 0x20, 0x2B, 0x2D, 0x39, 0xFF] as [UInt8] {
        var changed = diff
        changed[count] = byte
        let result = changed.withUnsafeBufferPointer { changed in
          Array(old.utf8).withUnsafeBufferPointer { TextDiff.apply(changed, to: $0) }
        }
        #expect(result == nil || result == Array(expected.utf8))
      }
    }
  }

  @Test("Diffs of random texts by Python's difflib give the new text")
  func difflib() throws {
    let output = try PythonScript.run("unified_diffs.py", ["300"])
    var count = 0
    for line in output.split(separator: "\n") {
      let fields = line.split(separator: " ", omittingEmptySubsequences: false).map(Self.unhex)
      #expect(Self.apply(fields[1], to: fields[0]) == fields[2], "case \(count)")
      count += 1
    }
    #expect(count == 300)
  }

  private static func unhex(_ text: Substring) -> String {
    let digits = Array(text)
    return String(
      decoding: stride(from: 0, to: digits.count, by: 2).compactMap {
        UInt8(String(digits[$0...$0 + 1]), radix: 16)
      }, as: UTF8.self)
  }
}
