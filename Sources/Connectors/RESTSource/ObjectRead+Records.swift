internal import Clocks
internal import EventLoop
internal import Pipeline
internal import SalesforceREST

/// Reads records by their IDs.
extension ObjectRead {
  /// The number of IDs in a query, limited by a URI of 16,384 bytes.
  private static let queryCount = 400
  /// The maximum length of a query's field list that fits into the URI with 200 IDs.
  private static let maxSelectLength = 5000
  /// The bytes of a URI for IDs and a condition.
  private static let maxMembershipLength = 15_000
  private static let maxAttempts = 4

  func read(ids: [String], store: Int) async {
    // IDs in events normally come from the service, but their type does not guarantee that.
    let valid = ids.filter { SOQL.isRecordID($0) }
    let others = ids.filter { !SOQL.isRecordID($0) }
    do {
      let (batch, missing) = try await self.found(valid, for: store)
      await self.send(
        .found(
          object: self.object, store: store, batch, missing: missing + others,
          calls: self.allowance.takeUntold()), weight: 1)
    } catch {
      let failure = error as? RESTError ?? RESTError(.retry, "\(error)")
      await self.send(
        .notAsked(
          object: self.object, store: store, SourceFailure(failure, entity: self.entity),
          calls: self.allowance.takeUntold()),
        weight: 0)
    }
  }

  private func found(
    _ ids: [String], for store: Int
  ) async throws -> (RecordBatch, missing: [String]) {
    guard !ids.isEmpty else {
      let empty = self.makeBatch()
      empty.readAt = self.client.clock.now
      return (empty, [])
    }
    let object = try await self.attempting { try await self.client.describe(self.entity) }
    let plan = SnapshotPlan(self.layout, object, isRead: self.reads)
    let readAt = self.client.clock.now
    let records = try await self.records(ids, plan.fields)
    let found = zip(ids, records).compactMap { $1 == nil ? nil : $0 }
    let members = try await self.members(among: found)
    // A record may meet the condition, then not, then again, all with the same stamp. Each answer
    // counts, so each has event IDs of its own.
    let number = members == nil ? 0 : Int(self.client.clock.wallTime)
    var batch = ReadBatch(self, plan, number: number, readAt: readAt)
    var missing: [String] = []
    for (id, record) in zip(ids, records) {
      if let record, members?.contains(id) ?? true {
        batch.add(record)
      } else if let record {
        batch.addDeletion(id, stamp: record["SystemModstamp"] ?? "")
      } else {
        missing.append(id)
      }
    }
    await self.send(batch.unreadable, store: store)
    // An object without this field has no recycle bin.
    let proved =
      object.field("IsDeleted") == nil
      ? [] : try await self.addDeleted(among: missing, plan, to: &batch)
    return (batch.take(), missing.filter { !proved.contains($0) })
  }

  /// The records that belong to a subset; nil if the object is copied completely. A record that
  /// changes between its read and this question has an event, after which it is read again.
  private func members(among ids: [String]) async throws -> Set<String>? {
    guard self.isSubset, let scope = self.scope else { return nil }
    // In a URI, an ID has up to 32 bytes, and each byte of the condition up to three.
    let count = min(
      Self.queryCount, max(1, (Self.maxMembershipLength - scope.utf8.count * 3) / 32))
    let asked = Set(ids)
    var members: Set<String> = []
    for start in stride(from: 0, to: ids.count, by: count) {
      let some = ids[start..<min(start + count, ids.count)]
      let statement = SOQL.select(
        ["Id"], from: self.entity, where: "\(SOQL.isOneOf(some)) AND (\(scope))")
      var page: QueryPage? = try await self.attempting { try await self.client.query(statement) }
      var recordCount = 0
      while let known = page {
        recordCount += known.records.count
        members.formUnion(known.records.compactMap { $0["Id"] }.filter(asked.contains))
        guard let next = known.next, !known.records.isEmpty, recordCount < some.count else { break }
        page = try await self.attempting { try await self.client.nextPage(next) }
      }
    }
    return members
  }

  /// In as many pieces as are needed.
  private func records(_ ids: [String], _ fields: [String]) async throws -> [QueryRecord?] {
    var pieces = 1
    while true {
      do {
        return try await self.records(ids, fields, pieces: pieces) { ids, fields in
          try await self.attempting {
            try await self.client.retrieve(self.entity, ids: ids, fields: fields)
          }
        }
      } catch let error as RESTError where error.disposition == .tooWide && pieces < Self.maxPieces
      {
        pieces *= 2
      }
    }
  }

  /// Adds the records that are in the recycle bin, as they were when they were deleted. A record
  /// that is merely not found may be hidden from the user.
  private func addDeleted(
    among ids: [String], _ plan: SnapshotPlan, to batch: inout ReadBatch
  ) async throws -> Set<String> {
    var deleted: Set<String> = []
    var rest = ids[...]
    let select = SOQL.select(plan.fields + ["IsDeleted"], from: self.entity)
    let isLong = select.utf8.count > Self.maxSelectLength
    // Records that were not requested are ignored.
    let asked = Set(ids)
    while !rest.isEmpty {
      let some = rest.prefix(isLong ? Self.queryCount : Self.queryCount / 2)
      rest = rest.dropFirst(some.count)
      // If an object has very many fields, the URI has no room for all of them.
      let fields = (isLong ? Array(plan.fields.prefix(2)) : plan.fields) + ["IsDeleted"]
      let statement = SOQL.select(fields, from: self.entity, where: SOQL.isOneOf(some))
      var page: QueryPage? = try await self.attempting {
        try await self.client.query(statement, withDeleted: true)
      }
      var count = 0
      while let found = page {
        count += found.records.count
        for record in found.records where record["IsDeleted"] == "true" {
          guard let id = record["Id"], asked.contains(id) else { continue }
          if isLong {
            batch.addDeletion(id, stamp: record[plan.stampName] ?? "")
          } else {
            batch.add(record, isDeleted: true)
          }
          deleted.insert(id)
        }
        guard let next = found.next, !found.records.isEmpty, count < some.count else {
          break
        }
        page = try await self.attempting { try await self.client.nextPage(next) }
      }
    }
    return deleted
  }

  private func attempting<Value>(_ body: () async throws -> Value) async throws -> Value {
    var delay = Duration.seconds(1)
    for _ in 1..<Self.maxAttempts {
      do {
        try self.allowance.take(usage: self.client.usage, now: self.client.clock.now)
        return try await body()
      } catch let error as RESTError where error.disposition == .retry {
        try await self.client.clock.sleep(for: delay)
        delay *= 2
      }
    }
    try self.allowance.take(usage: self.client.usage, now: self.client.clock.now)
    return try await body()
  }
}
