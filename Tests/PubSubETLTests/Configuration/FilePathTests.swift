import Testing

@testable import PubSubETL

@Suite("Paths of configuration")
struct FilePathTests {
  @Test(
    "Are absolute and without . and .., by bytes",
    arguments: [
      ("out", "/base/out"), ("/out/", "/out"), ("../out", "/out"), ("./a/./b//c", "/base/a/b/c"),
      ("../../../out", "/out"), ("a/../\u{301}b", "/base/\u{301}b"), ("/\u{301}b", "/\u{301}b"),
      ("a\u{301}/..", "/base"), ("..\u{301}/a", "/base/..\u{301}/a"),
    ])
  func resolved(path: String, absolute: String) {
    #expect(Array(FilePath.resolve(path, base: "/base").utf8) == Array(absolute.utf8))
  }

  @Test(
    "The directory of a file", arguments: [("/a/b", "/a"), ("/b", "/"), ("/a/\u{301}b", "/a")])
  func directory(file: String, directory: String) {
    #expect(FilePath.directory(of: file) == directory)
  }
}
