internal import Bytes
internal import JSON

extension RESTClient {
  /// The time through which every transaction that may change an object has finished
  /// (`latestDateCovered` of `GET /sobjects/X/updated`), as the org writes it. Nothing else
  /// guarantees that no change with an older stamp will still appear
  /// (RESTAndBulk.md#deleted-and-updated).
  ///
  /// - Parameters: ISO 8601 with a zone, more than a minute apart.
  package func latestDateCovered(
    of object: String, from start: String, to end: String
  ) async throws -> String {
    precondition(SOQL.isName(object), "an object's name comes from a schema")
    let call = Call(
      path:
        "sobjects/\(object)/updated/?start=\(PercentEncoding.encoded(start))&end=\(PercentEncoding.encoded(end))"
    )
    guard let text = try await self.json(call)["latestDateCovered"]?.string, text.utf8.count < 64
    else { throw RESTError(.retry, "\(call.name): the response has no latestDateCovered") }
    return text
  }
}
