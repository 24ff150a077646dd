import Pipeline
import PostgresClient
import PostgresSink
import TestSupport
import Testing

/// How the server keeps what it is given.
@Suite("Storage settings", .enabled(if: PostgresCluster.isAvailable)) struct StorageTests {
  @Test("Long values are compressed with LZ4, unless the database says otherwise")
  func compression() async throws {
    for isDecided in [false, true] {
      let database = try await TestDatabase()
      let eye = try database.connect()
      // Earlier servers know one method only.
      guard eye.serverVersion >= 140000 else { continue }
      let methods = try eye.column(
        "SELECT unnest(enumvals) FROM pg_settings WHERE name = 'default_toast_compression'")
      let expected = methods.contains("lz4") && !isDecided ? "lz4" : "pglz"
      if isDecided {
        try eye.execute("ALTER DATABASE \(database.name) SET default_toast_compression = pglz")
      }
      let run = try SinkRun(database).begin()
      let long = [SinkRun.parent: TestCell.text(String(repeating: "long ", count: 1000))]
      try run.write(["a"]) { _ in long }
      try run.commit()
      // Sent ahead, and to a record that is there: through the table of the deltas.
      let names = (0..<100).map { "b\($0)" } + ["a"]
      try run.write(names, type: "UPDATE") { _ in long }
      try run.commit()
      for table in ["opportunity", "opportunity_history"] {
        let used = try run.eye.column(
          """
          SELECT DISTINCT pg_column_compression(parent) FROM salesforce.\(table) \
          WHERE parent IS NOT NULL
          """)
        #expect(used == [expected], "\(table)")
      }
    }
  }

  @Test("The next version of a current row finds room in its page")
  func roomForUpdates() async throws {
    let run = try SinkRun(try await TestDatabase()).begin()
    let names = (0..<200).map { "r\($0)" }
    let text = { (letter: String) in
      [SinkRun.parent: TestCell.text(String(repeating: letter, count: 300))]
    }
    try run.write(names) { _ in text("a") }
    try run.commit()
    let page =
      "SELECT (ctid::text::point)[0] FROM salesforce.opportunity WHERE id IN ('r0', 'r60', 'r120')"
      + " ORDER BY id"
    let before = try run.eye.column(page)
    #expect(Set(before).count == 3)
    try run.write(["r0", "r60", "r120"], type: "UPDATE") { _ in text("b") }
    try run.commit()
    #expect(try run.eye.column(page) == before)
  }
}
