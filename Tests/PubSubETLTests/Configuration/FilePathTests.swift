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
    "A path gives the directory of its file",
    arguments: [("/a/b", "/a"), ("/b", "/"), ("/a/\u{301}b", "/a")])
  func directory(file: String, directory: String) {
    #expect(FilePath.directory(of: file) == directory)
  }
}
