internal import Foundation
internal import JSON
internal import SimulatedOrg

/// Compares what a pipeline wrote with what the simulator published: every row exactly once. Values are not
/// compared.
///
/// Reads with the programs `zstd` and `psql`, which share nothing with the exporter.
struct OutputComparison: Equatable {
  /// What the rows were compared with.
  var measure = "was published"
  /// Rows of the truth, and rows that were found.
  var expected = 0
  var found = 0
  var missing = 0
  var unknown = 0
  var repeated = 0

  var isEqual: Bool { self.missing == 0 && self.unknown == 0 && self.repeated == 0 }

  /// - Parameter leftOut: rows that the stages of the pipeline left out.
  init(expected: Set<String>, found: [String], leftOut: Int = 0) {
    self.expected = expected.count
    var seen: Set<String> = []
    for key in found {
      self.found += 1
      if !expected.contains(key) {
        self.unknown += 1
      } else if !seen.insert(key).inserted {
        self.repeated += 1
      }
    }
    self.missing = max(0, expected.count - seen.count - leftOut)
  }

  /// Compares the rows of one of several sinks among which a stage `route` divides the truth.
  ///
  /// - Parameter sent: rows that the runs say they wrote to the sink.
  init(sent: Int, truth: Set<String>, found: [String]) {
    self.init(expected: truth, found: found)
    self.measure = "the route sent there"
    self.expected = sent
    self.missing = max(0, sent - (found.count - self.unknown - self.repeated))
  }

  /// Identifies a row.
  private static func key(_ topic: String, _ event: String, _ record: String) -> String {
    "\(topic) \(event) \(record)"
  }

  /// The rows of a directory. Lines of reads (snapshots) do not count.
  ///
  /// - Parameter withTopics: false for keys that are to be compared with those of tables.
  static func keys(ofFilesIn directory: String, withTopics: Bool) throws -> [String] {
    let names = FileManager.default.enumerator(atPath: directory)?.compactMap { $0 as? String }
    let paths = (names ?? []).filter {
      $0.hasSuffix(".ndjson.zst") && $0.split(separator: "/").last?.hasPrefix(".") == false
    }.map { "\(directory)/\($0)" }
    var keys: [String] = []
    for start in stride(from: 0, to: paths.count, by: 500) {
      let chunk = paths[start..<min(start + 500, paths.count)]
      for line in try Self.output(of: ["zstd", "-dcq", "--"] + chunk) {
        let row = try JSONValue(parsing: String(line))
        // A record that was read beside the stream.
        if row["_kind"]?.string == "snapshot" { continue }
        guard let topic = row["_topic"]?.string, let event = row["_event_id"]?.string else {
          throw SimulatorError(
            .configuration, "the rows have no _topic and _event_id, so they cannot be compared")
        }
        for record in Self.records(row) {
          keys.append(Self.key(withTopics ? topic : "", event, record))
        }
      }
    }
    return keys
  }

  /// One row per record, or one with all of them.
  private static func records(_ row: JSONValue) -> [String] {
    if let all = row["_record_ids"]?.array, !all.isEmpty { return all.compactMap(\.string) }
    return [row["_record_id"]?.string ?? ""]
  }

  /// The rows of history tables. Those that came from reads (snapshots, repairs) do not count.
  static func keys(
    ofHistories histories: [(sink: String, schema: String, table: String)], url: String
  ) throws -> [String] {
    var keys: [String] = []
    for history in histories {
      let pattern = history.table.replacing("_", with: "\\_").replacing("{entity}", with: "%")
      let tables = try Self.query(
        """
        select format('%I.%I', table_schema, table_name) from information_schema.columns
        where table_schema = '\(history.schema.replacing("'", with: "''"))'
        and table_name like '\(pattern.replacing("'", with: "''"))'
        and column_name in ('_event_id', '_record_id', '_kind') group by 1 having count(*) = 3
        """, url: url)
      for table in tables {
        for line in try Self.query(
          "select _event_id || '|' || coalesce(_record_id, '') from \(table) "
            + "where _kind in ('change', 'gap', 'overflow', 'wildcard', 'event')", url: url)
        {
          let parts = line.split(separator: "|", omittingEmptySubsequences: false)
          guard parts.count == 2 else { continue }
          keys.append(Self.key("", String(parts[0]), String(parts[1])))
        }
      }
    }
    return keys
  }

  /// Ends all other sessions of the database, as a restart does.
  static func endSessions(url: String) throws {
    _ = try Self.query(
      "select pg_terminate_backend(pid) from pg_stat_activity "
        + "where datname = current_database() and pid <> pg_backend_pid()", url: url)
  }

  /// The rows that the simulator published.
  ///
  /// - Parameters:
  ///   - path: of the simulator's file.
  ///   - withTopics: false where a table has an event once, whichever topic brought it.
  static func truth(
    _ path: String, topics: [String], withTopics: Bool
  ) throws -> Set<String> {
    var keys: Set<String> = []
    for line in try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n") {
      let event = try JSONValue(parsing: String(line))
      guard let topic = event["topic"]?.string, topics.contains(topic),
        let id = event["event_id"]?.string
      else { continue }
      let records = event["header"]?["recordIds"]?.array?.compactMap(\.string) ?? []
      for record in records.isEmpty ? [""] : records {
        keys.insert(Self.key(withTopics ? topic : "", id, record))
      }
    }
    return keys
  }

  private static func query(_ sql: String, url: String) throws -> [Substring] {
    try Self.output(of: ["psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-d", url, "-c", sql])
  }

  /// Lines of a program's standard output.
  private static func output(of command: [String]) throws -> [Substring] {
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = command
    let pipe = Pipe()
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = pipe
    try process.run()
    let data = try pipe.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else {
      throw SimulatorError(
        .system, "\(command[0]) ended with exit code \(process.terminationStatus)")
    }
    return String(decoding: data, as: UTF8.self).split(separator: "\n")
  }
}
