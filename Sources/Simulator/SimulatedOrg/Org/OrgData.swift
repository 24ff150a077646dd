/// The kind of the org's records and events.
package enum OrgData: String, Sendable, CaseIterable {
  /// A sales team at work: users, accounts, contacts and opportunities whose values belong together.
  /// Other objects and platform events have random values.
  case sales
  /// Values of every type and shape in any combination, and all kinds of events, for tests.
  case random

  /// The number of opportunities, accounts and contacts of a sales team by default. A team with more
  /// events has more deals.
  static func usualSize(events: Int) -> Int { max(150, events / 2) }
}
