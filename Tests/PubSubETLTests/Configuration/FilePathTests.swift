import Foundation
import Testing

@testable import PubSubETL

@Suite("Configured paths")
struct FilePathTests {
  @Test(
    "Paths become absolute without . and .., byte by byte",
    arguments: [
      ("out", "/base/out"), ("/out/", "/out"), ("../out", "/out"), ("./a/./b//c", "/base/a/b/c"),
      ("../../../out", "/out"), ("a/../\u{301}b", "/base/\u{301}b"), ("/\u{301}b", "/\u{301}b"),
      ("a\u{301}/..", "/base"), ("..\u{301}/a", "/base/..\u{301}/a"),
    ])
  func resolved(path: String, absolute: String) {
    #expect(Array(FilePath.resolve(path, base: "/base").utf8) == Array(absolute.utf8))
  }

  @Test(
    "A path that only a shell would replace is a mistake",
    arguments: [
      ("~", true), ("~/x", true), ("~user/x", true), ("~root/", true), ("/a/$HOME/x", true),
      ("${HOME}/x", true), ("a\0b", true), ("~x", false), ("./~x/y", false), ("a~/x", false),
      ("", false), ("/a/b", false),
    ])
  func mistake(path: String, isMistake: Bool) {
    #expect((FilePath.mistake(in: path) != nil) == isMistake)
  }

  @Test(
    "A shell reads the original path from a printed command",
    arguments: ["/a/b.json", "/my files/it's", "/a\"b\\", "/$HOME/`id`", "/é\u{301}", ""])
  func shellWord(path: String) throws {
    let process = Process()
    process.executableURL = URL(filePath: "/bin/sh")
    process.arguments = ["-c", "printf %s \(FilePath.shellWord(path))"]
    let output = Pipe()
    process.standardOutput = output
    try process.run()
    let bytes = output.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    #expect(Array(bytes) == Array(path.utf8))
    #expect(FilePath.shellWord("/a/b-1_2.json") == "/a/b-1_2.json")
  }

  @Test(
    "A path gives the directory of its file",
    arguments: [("/a/b", "/a"), ("/b", "/"), ("/a/\u{301}b", "/a")])
  func directory(file: String, directory: String) {
    #expect(FilePath.directory(of: file) == directory)
  }
}
