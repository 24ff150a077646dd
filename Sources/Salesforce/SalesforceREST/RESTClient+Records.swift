internal import Bytes
internal import HTTPClient
internal import JSON

/// Some of a query's rows.
package struct QueryPage: Sendable {
  /// The number of rows of the whole query.
  package var totalSize: Int
  package var records: [QueryRecord]
  /// The path of the next page; nil after the last one.
  package var next: String?
}

/// One row of a query or retrieval, as JSON.
package struct QueryRecord: Sendable {
  let json: JSONValue

  /// The value of a field as Bulk would write it, empty for null; nil if the row does not have the
  /// field.
  package subscript(_ field: String) -> String? { Self.text(self.json[field]) }

  /// The values of fields. Each is looked for behind the one before, because records have the order
  /// of the request: looking from the start would take long for several hundred fields.
  package func texts(of fields: [String]) -> [String?] {
    let members = self.json.members ?? []
    var next = 0
    return fields.map { field in
      let found =
        members[next...].firstIndex { $0.name == field }
        ?? members[..<next].firstIndex { $0.name == field }
      guard let found else { return nil }
      next = found + 1
      return Self.text(members[found].value)
    }
  }

  private static func text(_ value: JSONValue?) -> String? {
    switch value?.content {
    case nil: nil
    case .null: ""
    case .string(let text): text
    case .number(let text): text
    case .boolean(let value): value ? "true" : "false"
    // A compound value: its components are read instead.
    case .array, .object: nil
    }
  }
}

extension QueryRecord {
  /// One record from parts of it, each with other fields.
  ///
  /// - Returns: nil if the parts are of different times (`SystemModstamp`).
  package init?(merging parts: [QueryRecord]) {
    let stamps = Set(parts.map { $0["SystemModstamp"] })
    guard stamps.count == 1 else { return nil }
    self.json = JSONValue(.object(parts.flatMap { $0.json.members ?? [] }))
  }
}

extension RESTClient {
  package func describe(_ object: String) async throws -> ObjectDescription {
    precondition(SOQL.isName(object), "an object's name comes from a schema")
    let call = Call(path: "sobjects/\(object)/describe")
    let description = try ObjectDescription(await self.json(call), call: call.name)
    guard description.name.lowercased() == object.lowercased() else {
      throw RESTError(.stop, "\(call.name): the response describes \(description.name)")
    }
    return description
  }

  /// What a URI may have, so that it fits into 16,384 bytes with all headers.
  private static let maxURIBytes = 14_000

  /// The first page of a query.
  ///
  /// - Parameter withDeleted: also returns rows in the recycle bin.
  /// - Throws: `RESTError` of disposition `tooWide` for a statement that no URI can hold.
  package func query(_ statement: String, withDeleted: Bool = false) async throws -> QueryPage {
    let call = Call(
      path: "\(withDeleted ? "queryAll" : "query")?q=\(PercentEncoding.encoded(statement))")
    guard call.path.utf8.count <= Self.maxURIBytes else {
      throw RESTError(
        .tooWide,
        "\(call.name): the statement has \(statement.utf8.count) bytes, too many for a URI")
    }
    return try await self.page(call)
  }

  /// The first page of a query of the Tooling API.
  func toolingQuery(_ statement: String) async throws -> QueryPage {
    try await self.page(Call(path: "tooling/query?q=\(PercentEncoding.encoded(statement))"))
  }

  /// The page at the path in the previous page's `next`.
  package func nextPage(_ path: String) async throws -> QueryPage {
    try await self.page(Call(path: path, kind: .ofJobsAndPages))
  }

  private func page(_ call: Call) async throws -> QueryPage {
    let json = try await self.json(call)
    guard let total = json["totalSize"]?.integer, Self.countRange.contains(total),
      let records = json["records"]?.array,
      let isDone = json["done"]?.boolean
    else { throw RESTError(.retry, "\(call.name): the response is not a query's result") }
    var next: String?
    if !isDone {
      // The call carries the access token, so only a path on the org is accepted.
      guard let path = json["nextRecordsUrl"]?.string, Self.isPath(path) else {
        throw RESTError(.retry, "\(call.name): the response has no usable nextRecordsUrl")
      }
      next = path
    }
    return QueryPage(
      totalSize: Int(total), records: records.map { QueryRecord(json: $0) }, next: next)
  }

  private static func isPath(_ text: String) -> Bool {
    text.hasPrefix("/services/data/v") && text.utf8.count < 2048 && !text.contains("..")
      && text.utf8.allSatisfy {
        (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "@") && $0 != UInt8(ascii: "#")
          && $0 != UInt8(ascii: "\\")
      }
  }

  /// The number of rows that match a condition.
  package func count(_ object: String, where condition: String? = nil) async throws -> Int {
    let condition = condition.map { " WHERE \($0)" } ?? ""
    return try await self.query("SELECT COUNT() FROM \(object)\(condition)").totalSize
  }

  /// The maximum number of records per `retrieve`.
  package static let maxRetrievedRecords = 2000

  /// Records by ID, in the order of `ids`; nil for those that are deleted, purged, unknown or not
  /// shared with the user.
  ///
  /// - Parameter ids: at most `maxRetrievedRecords`, of one object.
  package func retrieve(
    _ object: String, ids: [String], fields: [String]
  ) async throws -> [QueryRecord?] {
    precondition(SOQL.isName(object) && ids.count <= Self.maxRetrievedRecords)
    let body = JSONValue(
      .object([
        JSONMember("ids", .array(ids.map { .string($0) })),
        JSONMember("fields", .array(fields.map { .string($0) })),
      ]))
    let call = Call(
      method: .post, path: "composite/sobjects/\(object)", body: Array(body.text().utf8))
    guard let records = try await self.json(call).array, records.count == ids.count else {
      throw RESTError(.retry, "\(call.name): the response does not have a record for each ID")
    }
    return try zip(ids, records).map { id, record in
      if record.content == .null { return nil }
      let found = QueryRecord(json: record)
      // The response has 18 characters even if the requested ID has 15.
      guard let foundID = found["Id"],
        id.utf8.count == 18 ? foundID == id : foundID.hasPrefix(id)
      else {
        throw RESTError(.retry, "\(call.name): the response has records that were not requested")
      }
      return found
    }
  }

  /// Allowances by name, with what remains of them, which may be negative. Needs the permission
  /// 'View Setup and Configuration'.
  package func limits() async throws -> [String: (max: Int64, remaining: Int64)] {
    let json = try await self.json(Call(path: "limits"))
    var limits: [String: (max: Int64, remaining: Int64)] = [:]
    for member in json.members ?? [] {
      guard let max = member.value["Max"]?.integer,
        let remaining = member.value["Remaining"]?.integer
      else { continue }
      limits[member.name] = (max, remaining)
    }
    return limits
  }
}
