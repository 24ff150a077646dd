import Testing

@Suite("The page 'When something is wrong'")
struct WhenSomethingIsWrongTests {
  private static let page = "\(RepositoryPages.book)/WhenSomethingIsWrong.md"

  /// Messages without a row on the page, by the beginning or end of their source's path or by their text, with
  /// the reason. The page has a paragraph about them.
  private static let exceptions = [
    // Mistakes in what somebody wrote; the message names the place and the choices.
    "Command.swift", "LocalCheck.swift", "PubSubETL/Configuration/ConfigurationOverride.swift",
    "PubSubETL/Configuration/ProxyAddress.swift", "PubSubETL/Configuration/UserGroup.swift",
    "PubSubETL/Commands/DryRun", "Pipeline/Transforms",
    "Pipeline/Expressions", "CEL/", "JSON/", "Cryptography/",
    "the pipeline's name '…' cannot be a file name; it must not be empty, contain '/' or begin with '.'",
    // Errors of the system, with the file and the remedy.
    "DurableFiles/FileSystemError.swift",
    // Why one event, record or line is not exported, or why a file is damaged: the end of a message
    // that has a row.
    "Avro/", "PubSubSource/Decoding", "PubSubSource/Schemas", "SalesforcePubSub/EventSchemas.swift",
    "RESTSource/SnapshotDecoder.swift", "RESTSource/ReadBatch.swift", "PubSubETL/Commands/Publish",
    // Responses that a peer does not send.
    "PubSubAPI/", "HTTP2Transport/", "HTTPClient/", "TLSStream/", "SalesforceREST/",
    "PostgresClient/PostgresConnection.swift", "PostgresClient/PostgresConnection+Copy.swift",
    // No sink uses object storage or Parquet yet, so no run prints these.
    "ObjectStore/", "Parquet/",
    // The pages about logins explain these; `LoginPagesTests` holds them to it.
    "SalesforceAuth/",
    // Texts that are compared, not printed, and statements.
    "invalid SSL protocol version range", "ROLLBACK TO SAVEPOINT rows; RELEASE SAVEPOINT rows",
    "postgres: … has other columns and is being read",
  ]

  /// Simple word boundaries: by default, there is none at the point of `self.faults`.
  private static var patterns: [Regex<Substring>] {
    [
      #/\b(?!Validation)(?:[A-Z]\w*(?:Error|Failure|Fault|Problem|Attention|Finding)|warn|fail|incomplete|log|attend|self\.add)\(/#,
      #/\b(?:logger\.(?:warning|error|critical)|(?:warnings|faults|repairs|obstacles|acceptedFaults)\.append)\(/#,
      #/\bonRepair\??\(/#,
      #/\b(?:var|func) (?:message|securityWarnings|missing|sentence|verifyObstacle|repairObstacle|problem|obstacle|refusal|conflict|warning|advice|remedy|fault)\b[^{\n]*\{/#,
    ].map { $0.wordBoundaryKind(.simple) }
  }

  private static func rows() throws -> [[Substring]] {
    try RepositoryPages.text(Self.page).split(separator: "\n")
      .filter { $0.hasPrefix("| ") && !$0.hasPrefix("| symptom") }
      .map { $0.dropFirst(2).split(separator: " | ") }
  }

  /// The fixed pieces of the messages that a row quotes.
  private static func pieces(_ row: [Substring]) -> [Substring] {
    row[2].split(separator: "`", omittingEmptySubsequences: false).enumerated()
      .filter { !$0.offset.isMultiple(of: 2) }
      .flatMap { $0.element.split(separator: "…").map(Self.trimmed) }
  }

  private static func trimmed(_ piece: Substring) -> Substring {
    let start = piece.drop { $0 == " " }
    return start.last == " " ? start.dropLast() : start
  }

  @Test("The program prints every message that the page quotes")
  func messages() throws {
    let texts = try SourceTexts.paths().flatMap { try SourceTexts($0).literals }
      .map { $0.text.replacing("\n", with: " ") }.joined(separator: "\n")
    let rows = try Self.rows()
    #expect(rows.count >= 120)
    for row in rows {
      try #require(row.count == 4, "\(row)")
      let pieces = Self.pieces(row)
      try #require(!pieces.isEmpty, "\(row[2])")
      for piece in pieces where !texts.contains(piece) {
        Issue.record("\(row[0]): no text of the program has '\(piece)'")
      }
    }
  }

  @Test("The page has every warning and error of five or more words, or says where it is explained")
  func completeness() throws {
    let quoted = try Self.rows().flatMap(Self.pieces)
      .filter { $0.split(separator: " ").count >= 3 }.map(String.init)
    var unused = Set(Self.exceptions)
    var count = 0
    for path in try SourceTexts.paths() {
      let source = try SourceTexts(path)
      let file = path.split(separator: "/").dropFirst(2).joined(separator: "/")
      for pattern in Self.patterns {
        for call in source.literals(after: pattern) {
          guard call.literals.contains(where: { $0.wordCount >= 5 }) else { continue }
          let texts = call.literals.map { $0.text.replacing("\n", with: " ") }
          count += 1
          let exception = Self.exceptions.first {
            file.hasPrefix($0) || file.hasSuffix($0) || texts.contains($0)
          }
          if let exception {
            unused.remove(exception)
          } else if !texts.contains(where: { text in quoted.contains { text.contains($0) } }) {
            Issue.record(
              "\(path): \(Self.page) has no row for '\(texts.joined(separator: "' or '"))'")
          }
        }
      }
    }
    #expect(count > 350)
    #expect(unused == [], "no message is at these places")
  }
}
