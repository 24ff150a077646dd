import Foundation
import Testing

@Suite("The page Expressions")
struct DocumentationTests {
  private static let row = """
    {"StageName": "Closed Won", "Amount": 1200.5, "IsPrivate": false, "Name": "Acme Corp",
     "Quantity": 4, "CreatedAt": "2026-02-17T04:03:15Z", "ModifiedAt": "2026-02-17T06:03:15Z",
     "Tags": ["red", "blue"]}
    """

  /// Cells of the table below a heading.
  private static func table(_ heading: String) throws -> [[String]] {
    let root = URL(fileURLWithPath: #filePath)
      .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    let page = try String(
      contentsOf: root.appending(path: "Sources/Pipeline/CEL/CEL.docc/Expressions.md"),
      encoding: .utf8)
    let lines = page.split(separator: "\n", omittingEmptySubsequences: false)
      .drop { $0 != "## \(heading)" }
      .drop { !$0.hasPrefix("|") }.prefix { $0.hasPrefix("|") }
    return lines.dropFirst(2).map { line in
      line.replacingOccurrences(of: "\\|", with: "\u{1}")
        .split(separator: "|")
        .map {
          $0.replacingOccurrences(of: "\u{1}", with: "|").trimmingCharacters(in: .whitespaces)
            .trimmingCharacters(in: CharacterSet(charactersIn: "`"))
        }
    }
  }

  private static let expected = [
    "StageName == 'Closed Won'": "bool true", "Amount != null ? Amount : 0.0": "double 1200.5",
    "Amount > 100 ? 'big' : 'small'": "string \"big\"", "Name + ' Ltd'": "string \"Acme Corp Ltd\"",
    "int(Amount)": "int 1200", "Amount * double(Quantity)": "double 4802.0",
    "timestamp(ModifiedAt) - timestamp(CreatedAt) > duration('1h')": "bool true",
    "timestamp(CreatedAt).getHours('Europe/Berlin')": "int 5",
    "Tags.exists(t, string(t).startsWith('r'))": "bool true", "Amount == null": "bool false",
    "!(StageName in ['New', 'Open'])": "bool true", "Name.matches('(?i)corp')": "bool true",
  ]

  @Test("Every expression in the table SQL → CEL has a value")
  func sqlTable() throws {
    let rows = try Self.table("SQL → CEL")
    #expect(rows.count > 20)
    var checked = 0
    for cells in rows {
      let expression = try #require(cells.last)
      let result = outcome(expression, row: Self.row)
      #expect(!result.contains("error"), "\(expression): \(result)")
      if let expected = Self.expected[expression] {
        checked += 1
        #expect(result == expected, "\(expression)")
      }
    }
    #expect(checked == Self.expected.count)
  }
}
