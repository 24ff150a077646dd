extension Org {
  package static let managedObject = "ManagedEventSubscription"

  /// The answer to `SELECT Id, DeveloperName, Metadata FROM ManagedEventSubscription WHERE DeveloperName =
  /// 'X' LIMIT 1`, or `Id = '…'`, which needs View Setup and Configuration.
  package func managedSubscriptions(_ text: String) throws(APIRefusal) -> String {
    guard self.userPermissions.contains("ViewSetup") else {
      throw .unknownObject(Self.managedObject)
    }
    let words = text.split { " ,='".contains($0) }.map(String.init)
    guard let from = words.firstIndex(of: "FROM"), words.first == "SELECT",
      words.count == from + 7, words[from + 1] == Self.managedObject, words[from + 2] == "WHERE",
      words[from + 5] == "LIMIT", words[from + 6] == "1"
    else { throw .malformed("unexpected token: only one managed subscription can be queried") }
    let value = words[from + 4]
    let found: ManagedSubscriptions.Record? =
      switch words[from + 3] {
      case "DeveloperName": self.managed.records.first { $0.developerName == value }
      case "Id": self.managed.records.first { $0.id == value || $0.id.prefix(15) == value }
      default: throw .unknownField(words[from + 3], of: Self.managedObject)
      }
    var rows: [String] = []
    if let found {
      let members = try words[1..<from].map { column throws(APIRefusal) in
        "\"\(column)\":\(try Self.value(column, of: found))"
      }
      rows.append(
        "{\"attributes\":{\"type\":\"\(Self.managedObject)\",\"url\":\"/services/data/v"
          + "\(DataAPI.version)/tooling/sobjects/\(Self.managedObject)/\(found.id)\"},"
          + members.joined(separator: ",") + "}")
    }
    return "{\"size\":\(rows.count),\"totalSize\":\(rows.count),\"done\":true,"
      + "\"queryLocator\":null,\"entityTypeName\":\"\(Self.managedObject)\",\"records\":["
      + rows.joined() + "]}"
  }

  private static func value(
    _ column: String, of record: ManagedSubscriptions.Record
  ) throws(APIRefusal) -> String {
    func word(_ preset: ReplayPreset) -> String {
      preset == .earliest ? "\"EARLIEST\"" : "\"LATEST\""
    }
    switch column {
    case "Id": return JSONText.string(record.id)
    case "DeveloperName": return JSONText.string(record.developerName)
    case "Metadata":
      return "{\"defaultReplay\":\(word(record.defaultReplay)),"
        + "\"errorRecoveryReplay\":\(word(record.errorRecoveryReplay)),"
        + "\"label\":\(JSONText.string(record.developerName)),"
        + "\"state\":\"\(record.isRunning ? "RUN" : "STOP")\","
        + "\"topicName\":\(JSONText.string(record.topic)),\"urls\":null,"
        + "\"version\":\"\(DataAPI.version)\"}"
    default: throw .unknownField(column, of: Self.managedObject)
    }
  }
}
