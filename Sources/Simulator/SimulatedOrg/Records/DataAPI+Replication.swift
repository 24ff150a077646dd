/// `GET /sobjects/X/updated` and `/deleted` (RESTAndBulk.md#deleted-and-updated).
extension DataAPI {
  private static let day: Int64 = 86_400_000
  /// The most IDs of an answer.
  private static let maxIDs = 600_000

  /// The changes in a period, and the time through which every transaction is finished.
  package func updated(
    _ name: String, from start: String?, to end: String?, at now: Int64
  ) throws(APIRefusal) -> String {
    let object = try self.object(name)
    let period = try Self.period(start, end, reach: 30 * Self.day, at: now)
    let ids = try self.changed(object, in: period) { !$0.isDeleted }.map { "\"\($0.id)\"" }
    return "{\"ids\":[\(ids.joined(separator: ","))],"
      + "\"latestDateCovered\":\"\(Self.text(self.covered(period, at: now)))\"}"
  }

  package func deleted(
    _ name: String, from start: String?, to end: String?, at now: Int64
  ) throws(APIRefusal) -> String {
    let object = try self.object(name)
    let period = try Self.period(start, end, reach: 15 * Self.day, at: now)
    let records = try self.changed(object, in: period) { $0.isDeleted }.map {
      "{\"id\":\"\($0.id)\",\"deletedDate\":\"\(Self.text($0.stamp))\"}"
    }
    return "{\"deletedRecords\":[\(records.joined(separator: ","))],"
      + "\"earliestDateAvailable\":\"\(Self.text(now - 15 * Self.day))\","
      + "\"latestDateCovered\":\"\(Self.text(self.covered(period, at: now)))\"}"
  }

  /// A commit that cannot be seen yet holds it back.
  private func covered(_ period: ClosedRange<Int64>, at now: Int64) -> Int64 {
    min(period.upperBound, now - self.store.visibilityDelay)
  }

  private func changed(
    _ object: Int, in period: ClosedRange<Int64>, where isWanted: (RecordTable.Record) -> Bool
  ) throws(APIRefusal) -> [(id: String, stamp: Int64)] {
    var found: [(id: String, stamp: Int64)] = []
    for index in 0..<self.store.recordCount(object) {
      let record = self.store.record(object, index)
      guard period.contains(record.stampedAt), isWanted(record),
        self.store.isVisible(object, index, withDeleted: true)
      else { continue }
      found.append((String(decoding: record.id, as: UTF8.self), record.stampedAt))
    }
    guard found.count <= Self.maxIDs else {
      throw APIRefusal("EXCEEDED_ID_LIMIT", "exceeded max number of ids; narrow the window")
    }
    return found
  }

  /// Seconds are whole, and the bounds inclusive.
  private static func period(
    _ start: String?, _ end: String?, reach: Int64, at now: Int64
  ) throws(APIRefusal) -> ClosedRange<Int64> {
    guard let start = try self.time(start), let end = try self.time(end) else {
      throw APIRefusal("MALFORMED_QUERY", "start and end must be dates with a time")
    }
    guard start >= now - reach else {
      throw APIRefusal("INVALID_REPLICATION_DATE", "startDate before org replication enabled date")
    }
    guard end - start > 60_000 else {
      throw APIRefusal(
        "INVALID_REPLICATION_DATE", "endDate must be at least one minute greater than startDate")
    }
    return start...end
  }

  private static func time(_ text: String?) throws(APIRefusal) -> Int64? {
    guard let text, case .dateTime(let time) = try SOQLLexer.tokens(of: text).first else {
      return nil
    }
    return time - time % 1000
  }

  private static func text(_ time: Int64) -> String {
    "\(CivilDate.text(time))T\(CivilDate.clock(time - time % 1000))+0000"
  }
}
