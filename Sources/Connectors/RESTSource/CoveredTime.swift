internal import Bytes
package import SalesforceREST

/// The time through which an org's changes to an object are settled.
package enum CoveredTime {
  /// Longer than the shortest period that the call accepts.
  private static let period: Int64 = 3 * 60 * 1000
  /// Longer than any transaction.
  private static let maxAge: Int64 = 24 * 3600 * 1000

  /// The time, in milliseconds since 1970, before which every transaction has ended, so that no
  /// older change can still appear.
  ///
  /// - Parameter now: the org's clock, milliseconds since 1970.
  package static func ask(
    _ client: RESTClient, of object: String, now: Int64
  ) async throws -> Int64 {
    let text = try await client.latestDateCovered(
      of: object, from: UTCTime.timestamp(milliseconds: now - Self.period),
      to: UTCTime.timestamp(milliseconds: now))
    let time = Array(text.utf8).withUnsafeBytes { UTCTime.timestamp($0) }
    guard let time else {
      throw RESTError(.retry, "\(object): latestDateCovered is not a usable time")
    }
    guard time > now - Self.maxAge else {
      throw RESTError(.stop, "\(object): latestDateCovered is more than a day ago")
    }
    return min(time, now)
  }
}
