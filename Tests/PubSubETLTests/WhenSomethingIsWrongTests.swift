import FoundationEssentials
import Testing

@Suite("The page 'When something is wrong'")
struct WhenSomethingIsWrongTests {
  private static let root = URL(filePath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent()

  private static func text(_ path: String) throws -> String {
    String(decoding: try Data(contentsOf: Self.root.appending(path: path)), as: UTF8.self)
  }

  /// All sources of the program but the simulator's, with the pieces of split literals joined and what
  /// is interpolated left out.
  private static func sources() throws -> String {
    let folder = Self.root.appending(path: "Sources").path
    var text = ""
    for name in try FileManager.default.subpathsOfDirectory(atPath: folder).sorted()
    where name.hasSuffix(".swift") && !name.hasPrefix("PubSubSimulator")
      && !name.hasPrefix("SimulatedOrg")
    {
      text += try Self.text("Sources/\(name)")
    }
    return text.replacing(#/"\s*\+ "/#, with: "").replacing(#/ \\\n\s*/#, with: " ")
  }

  private static func rows() throws -> [[Substring]] {
    try Self.text("Sources/PubSubETL/PubSubETL.docc/WhenSomethingIsWrong.md").split(separator: "\n")
      .filter { $0.hasPrefix("| ") && !$0.hasPrefix("| symptom") }
      .map { $0.dropFirst(2).split(separator: " | ") }
  }

  @Test("The program prints every message that the page quotes")
  func messages() throws {
    let sources = try Self.sources()
    let rows = try Self.rows()
    #expect(rows.count >= 35)
    for row in rows {
      try #require(row.count == 4, "\(row)")
      let quoted = row[2].split(separator: "`", omittingEmptySubsequences: false)
      try #require(quoted.count >= 3, "\(row[2])")
      for piece in quoted[1].split(separator: "…") {
        let words = piece.trimmingPrefix(" ")
        #expect(sources.contains(words), "\(row[0]): '\(words)'")
      }
    }
  }
}
