internal import Foundation
internal import JSON
internal import SimulatedOrg

/// The user's pipeline, changed so that it reads from a simulator and writes into a directory of its own.
struct RehearsedPipeline {
  var name: String
  var topics: [String]
  /// Names and absolute directories of files sinks.
  var directories: [(sink: String, path: String)] = []
  /// Names, schemas and names of history tables of the postgres sinks that have some.
  var histories: [(sink: String, schema: String, table: String)] = []
  /// What the stage `route`, which is the last, does with rows; nil without one.
  var route: Route?

  struct Route: Equatable {
    /// Every row goes to some sink.
    var sendsAll: Bool
  }

  var sinkCount: Int
  var hasPostgres = false
  /// The pipeline copies the records that the org has before the first event.
  var readsRecords: Bool {
    self.hasPostgres || self.document["source"]?["snapshot"]?["mode"]?.string == "initial"
  }
  /// The run's end has to be asked for, because the file says that there is none.
  var runsForever: Bool
  /// What is written to a file for the exporter.
  private(set) var document: JSONValue

  /// - Parameters:
  ///   - path: of the pipeline file.
  ///   - work: absolute path of the directory for everything that the pipeline writes.
  ///   - databaseURL: takes the place of the URLs of postgres sinks.
  init(contentsOf path: String, work: String, databaseURL: String?) throws {
    guard let data = FileManager.default.contents(atPath: path),
      let text = String(data: data, encoding: .utf8)
    else { throw SimulatorError(.configuration, "\(path): cannot be read as UTF-8 text") }
    try self.init(json: text, path: path, work: work, databaseURL: databaseURL)
  }

  init(json: String, path: String, work: String, databaseURL: String?) throws {
    var document: JSONValue
    do { document = try JSONValue(parsing: json) } catch {
      throw SimulatorError(.configuration, "\(path): \(error)")
    }
    func refuse(_ message: String) -> SimulatorError {
      SimulatorError(.configuration, "\(path): \(message)")
    }
    guard let name = document["name"]?.string, var source = document["source"],
      source.members != nil, var sinks = document["sinks"]?.array
    else {
      throw refuse("is not a pipeline file; 'pubsub-etl check \(path)' says what it lacks")
    }
    self.name = name
    self.sinkCount = sinks.count
    self.topics = try Self.topics(source["topic"], refuse)
    self.runsForever = document["run"]?["until"]?.string == "forever"
    source.set("org", Self.org)
    document.set("source", source)
    for index in sinks.indices {
      let sinkName = sinks[index]["name"]?.string ?? sinks[index]["type"]?.string ?? ""
      switch sinks[index]["type"]?.string {
      case "files":
        let directory = "\(work)/out/\(index)"
        sinks[index].set("directory", .string(directory))
        self.directories.append((sinkName, directory))
      case "postgres":
        guard let databaseURL else {
          throw refuse(
            "sink '\(sinkName)' writes to PostgreSQL; give a scratch database with --database-url")
        }
        self.hasPostgres = true
        sinks[index].set("url", .string(databaseURL))
        if sinks[index]["mode"]?.string != "current" {
          self.histories.append(
            (
              sink: sinkName, schema: sinks[index]["schema"]?.string ?? "public",
              table: sinks[index]["tables"]?["history"]?.string ?? "{entity}_history"
            ))
        }
      default: break
      }
    }
    document.set("sinks", .array(sinks))
    if let stage = document["stages"]?.array?.last, stage["type"]?.string == "route" {
      self.route = Route(sendsAll: stage["default"]?.array?.isEmpty == false)
    }
    if var checkpoint = document["checkpoint"], checkpoint.members != nil {
      checkpoint.set("directory", .string("\(work)/state"))
      document.set("checkpoint", checkpoint)
    }
    if var letters = document["dead_letter"], letters["directory"] != nil {
      letters.set("directory", .string("\(work)/state/dead"))
      document.set("dead_letter", letters)
    }
    self.document = document
  }

  /// The org, with the names of variables that the simulator's environment has.
  private static let org = JSONValue(
    .object([
      JSONMember("endpoint", .string("${PUBSUB_ENDPOINT}")),
      JSONMember(
        "tls",
        JSONValue(.object([JSONMember("ca_file", .string("${PUBSUB_CA_FILE:-}"))]))),
      JSONMember(
        "auth",
        JSONValue(
          .object([
            JSONMember("type", .string("client_credentials")),
            JSONMember("login_url", .string("${SF_LOGIN_URL}")),
            JSONMember("client_id", .string("${SF_CLIENT_ID}")),
            JSONMember("client_secret", .string("${SF_CLIENT_SECRET}")),
          ]))),
    ]))

  private static func topics(
    _ value: JSONValue?, _ refuse: (String) -> SimulatorError
  ) throws -> [String] {
    let names = (value?.array ?? value.map { [$0] } ?? []).map {
      $0.string ?? $0["topic"]?.string ?? ""
    }
    guard !names.isEmpty else { throw refuse("/source/topic names no topic") }
    let known = Topic.all.map(\.name)
    for name in names where !known.contains(name) {
      throw refuse(
        "/source/topic: the simulator has no topic '\(name)'; it has: "
          + known.joined(separator: ", "))
    }
    return names
  }
}

extension JSONValue {
  subscript(name: String) -> JSONValue? {
    self.members?.first { $0.name == name }?.value
  }

  /// Replaces a member of an object, or adds it.
  mutating func set(_ name: String, _ value: JSONValue) {
    var members = self.members ?? []
    if let index = members.firstIndex(where: { $0.name == name }) {
      members[index].value = value
    } else {
      members.append(JSONMember(name, value))
    }
    self.content = .object(members)
  }
}
