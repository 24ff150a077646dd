import FoundationEssentials
import Testing

@testable import PubSubETL

/// The pages say what the repository has.
@Suite("The book")
struct BookTests {
  @Test("Links between pages lead to pages and headings that exist")
  func links() throws {
    var count = 0
    for page in try RepositoryPages.all() {
      for link in try RepositoryPages.links(page) {
        let parts = link.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false)
        let target = parts[0].isEmpty ? page : RepositoryPages.path(of: parts[0], from: page)
        count += 1
        guard RepositoryPages.exists(target) else {
          Issue.record("\(page): \(link) leads nowhere")
          continue
        }
        if parts.count > 1 {
          #expect(
            try RepositoryPages.anchors(target).contains(String(parts[1])),
            "\(page): \(link) names no heading")
        }
      }
    }
    #expect(count > 150)
  }

  @Test("Files that pages name exist")
  func files() throws {
    var count = 0
    for page in try RepositoryPages.all() {
      for line in try RepositoryPages.prose(page) {
        for match in line.matches(of: /`((?:Sources|Tests|scripts|pipelines|\.github)\/[^`\s]+)`/) {
          let path = String(match.output.1)
          guard path.allSatisfy({ !"*<…$".contains($0) }) else { continue }
          count += 1
          #expect(RepositoryPages.exists(path), "\(page): \(path) does not exist")
        }
      }
    }
    #expect(count > 150)
  }

  /// As Architecture.md says: a file named without its folder lies beside the one named before it.
  @Test("A file that the architecture names without a folder is next to the one named before it")
  func filesBeside() throws {
    var folder = ""
    var count = 0
    let page = "Sources/Program/PubSubETL/PubSubETL.docc/Architecture.md"
    for line in try RepositoryPages.prose(page) {
      for match in line.matches(of: /`([^`\s]+\.swift)`/) {
        let path = String(match.output.1)
        if path.contains("/") {
          folder = path.split(separator: "/").dropLast().joined(separator: "/")
        } else if path != "Package.swift" {
          count += 1
          #expect(RepositoryPages.exists("\(folder)/\(path)"), "\(path) is not in \(folder)")
        }
      }
    }
    #expect(count >= 5)
  }

  @Test("Pages and sections that comments cite exist")
  func citations() throws {
    var places: [String: String] = [:]
    for page in try RepositoryPages.all() {
      let name = String(page.split(separator: "/").last ?? "")
      #expect(places.updateValue(page, forKey: name) == nil, "two pages are named \(name)")
    }
    var count = 0
    let files = try RepositoryPages.files(in: ["Sources", "Tests"], suffixes: [".swift", ".py"])
    for file in files where !file.hasPrefix("Tests/PubSubETLTests/Book/") {
      for line in try RepositoryPages.text(file).split(separator: "\n")
      where line.contains(".md") && (line.contains("//") || file.hasSuffix(".py")) {
        for match in line.matches(of: /\b([A-Z][A-Za-z]+\.md)(?:#([a-z0-9_-]+))?/) {
          let name = String(match.output.1)
          guard name != "README.md" else { continue }
          count += 1
          guard let page = places[name] else {
            Issue.record("\(file): the page \(name) does not exist")
            continue
          }
          guard let anchor = match.output.2 else { continue }
          #expect(
            try RepositoryPages.anchors(page).contains(String(anchor)),
            "\(file): \(match.output.0) names no heading")
        }
      }
    }
    #expect(count > 80)
  }

  @Test("Comments cite nothing outside the repository")
  func outside() throws {
    for file in try RepositoryPages.files(in: ["Sources", "Tests"], suffixes: [".swift", ".py"])
    where !file.hasPrefix("Tests/PubSubETLTests/Book/") {
      let text = try RepositoryPages.text(file)
      for place in ["contract/", "the design page", "of the contract page"] {
        #expect(!text.contains(place), "\(file): \(place)")
      }
    }
  }

  @Test(
    "The examples on the pages are those that tests run",
    arguments: [
      ("WritingAStage", ["Tests/PipelineTests/Book/LowerCase.swift"]),
      ("WritingASink", ["Tests/PubSubETLTests/Book/CountsSink.swift"]),
      ("WritingALogin", ["Tests/SalesforceAuthTests/Book/TokenDocumentFlow.swift"]),
      (
        "Libraries",
        [
          "Tests/Examples/subscribe/Package.swift",
          "Tests/Examples/subscribe/Sources/subscribe/main.swift",
          "Tests/Examples/avro-decode/Sources/avro-decode/main.swift",
          "Tests/Examples/grpc-over-tls/Sources/grpc-over-tls/main.swift",
        ]
      ),
    ])
  func examples(page: String, files: [String]) throws {
    let blocks = try RepositoryPages.blocks(
      "\(RepositoryPages.book)/\(page).md", language: "swift")
    #expect(blocks == (try files.map { try RepositoryPages.text($0) }))
  }

  @Test("README is short enough to be read")
  func readmeSize() throws {
    let text = try RepositoryPages.text("README.md")
    #expect(text.split(separator: "\n", omittingEmptySubsequences: false).count <= 131)
    #expect(text.utf8.count <= 8192)
  }

  @Test("The glossary has at most twelve words")
  func glossary() throws {
    let headings = try RepositoryPages.prose("\(RepositoryPages.book)/Glossary.md")
      .filter { $0.hasPrefix("## ") }
    #expect((1...12).contains(headings.count))
  }

  @Test("The reference equals the output of pubsub-etl pipeline-schema --reference")
  func reference() throws {
    let page = try RepositoryPages.text("\(RepositoryPages.book)/PipelineReference.md")
    #expect(page == PipelineReference.text)
  }

  @Test("The page's exit codes are those of the program")
  func exitCodes() throws {
    let codes = try RepositoryPages.prose("\(RepositoryPages.book)/ExitCodes.md").compactMap {
      $0.firstMatch(of: /^\| (\d+) \|/).flatMap { Int32($0.output.1) }
    }
    #expect(codes == ExitCode.allCases.map(\.rawValue))
  }

  @Test("The page's reasons, with codes and meanings, are those of the program")
  func reasons() throws {
    let listed = try RepositoryPages.prose("\(RepositoryPages.book)/ExitCodes.md").filter {
      $0.hasPrefix("| `")
    }
    let rows = EndReason.allCases.map { reason in
      let codes = reason.codes.map { "\($0.rawValue)" }.joined(separator: ", ")
      return "| `\(reason.rawValue)` | \(codes) | \(reason.meaning) |"
    }
    #expect(listed.map(String.init) == rows)
  }

  @Test("The contents page links every page")
  func root() throws {
    let root = "\(RepositoryPages.book)/PubSubETL.md"
    let linked = Set(
      try RepositoryPages.links(root).map { RepositoryPages.path(of: $0[...], from: root) })
    for page in try RepositoryPages.all() where page.contains(".docc/") && page != root {
      #expect(linked.contains(page), "\(page)")
    }
  }
}
