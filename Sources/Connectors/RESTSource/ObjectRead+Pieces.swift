internal import Pipeline
internal import SalesforceREST

/// Reads records with more fields than fit into one request (RESTAndBulk.md#wide-objects).
extension ObjectRead {
  /// The most requests for the fields of a record.
  static let maxPieces = 256
  /// Values of one request, whose response has to fit into memory.
  private static let maxValues = 200_000
  /// How often records are requested again that change between two requests.
  private static let maxReadings = 5

  typealias Retrieval = (_ ids: [String], _ fields: [String]) async throws -> [QueryRecord?]

  /// Reads the records whose IDs a page lists, from the pass's row on. Those that have vanished
  /// meanwhile are left out; their deletion is an event.
  func read(
    _ page: QueryPage, _ plan: SnapshotPlan, _ batch: inout ReadBatch, _ pass: inout ReadPass,
    pieces: Int
  ) async throws {
    let most = max(1, min(RESTClient.maxRetrievedRecords, Self.maxValues / plan.fields.count))
    while pass.row < page.records.count {
      try Task.checkCancellation()
      let end = min(pass.row + most, page.records.count)
      let listed = page.records[pass.row..<end]
      for record in listed where record["IsDeleted"] == "true" {
        batch.addDeletion(record["Id"] ?? "", stamp: record[plan.stampName] ?? "")
      }
      let ids = listed.filter { $0["IsDeleted"] != "true" }.compactMap { $0["Id"] }
        .filter(SOQL.isRecordID)
      let records = try await self.records(ids, plan.fields, pieces: pieces) {
        try await self.client.retrieve(self.entity, ids: $0, fields: $1)
      }
      for case let record? in records { batch.add(record) }
      await self.send(&batch, end, &pass)
    }
  }

  /// Records in the order of their IDs, nil for those that are not found.
  ///
  /// - Parameters:
  ///   - fields: `Id`, `SystemModstamp` and others.
  ///   - pieces: the number of requests for these fields.
  func records(
    _ ids: [String], _ fields: [String], pieces: Int, by retrieve: Retrieval
  ) async throws -> [QueryRecord?] {
    let parts = Self.parts(of: fields, count: pieces)
    var result = [QueryRecord?](repeating: nil, count: ids.count)
    var open = Array(ids.indices)
    for _ in 0..<Self.maxReadings where !open.isEmpty {
      var found = [[QueryRecord?]](repeating: [], count: open.count)
      for part in parts {
        let records = try await retrieve(open.map { ids[$0] }, part)
        for (place, record) in records.enumerated() { found[place].append(record) }
      }
      var changed: [Int] = []
      for (place, records) in zip(open, found) {
        let known = records.compactMap { $0 }
        if known.isEmpty { continue }
        // Deleted or changed between two requests.
        result[place] = known.count == records.count ? QueryRecord(merging: known) : nil
        if result[place] == nil { changed.append(place) }
      }
      open = changed
    }
    guard open.isEmpty else {
      throw RESTError(
        .retry,
        "\(self.entity): \(open.count) records changed each time between the requests for parts of "
          + "their fields")
    }
    return result
  }

  /// Each part begins with `Id` and `SystemModstamp`.
  private static func parts(of fields: [String], count: Int) -> [[String]] {
    let (key, others) = (Array(fields.prefix(2)), Array(fields.dropFirst(2)))
    let size = max(1, (others.count + count - 1) / count)
    guard others.count > size else { return [fields] }
    return stride(from: 0, to: others.count, by: size).map {
      key + others[$0..<min($0 + size, others.count)]
    }
  }
}
