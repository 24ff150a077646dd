internal import JSON

/// Columns that a stage names. Names that no schema has had so far are typos, or fields that were
/// renamed or deleted in the org.
package struct NamedColumns: Sendable, Equatable {
  /// Place of the stage in its chain, from 0.
  package var stage = 0
  /// Kind of the stage: `drop`; or the member of a sink's configuration: `column_types`.
  package var type: String
  package var isOfStage = true
  /// The stage hides values, which a typo would export.
  package var isHidden = false
  package var names: Set<String>
  package var unmatched: Set<String>
  /// The configuration accepts names that no schema has: `"missing": "ignore"`.
  package var isAllowed: Bool
  /// Names that schemas have had, for suggestions.
  package var known: Set<String>
  /// The stages before this one without which a name would be matched: `stage drop (stages[0])`.
  package var removedBy: [String: String] = [:]
  /// The place of a name in a stage with expressions: `line 1, column 12`.
  package var places: [String: String] = [:]

  package init(
    type: String, names: Set<String>, unmatched: Set<String>, isAllowed: Bool, known: Set<String>
  ) {
    self.type = type
    self.names = names
    self.unmatched = unmatched
    self.isAllowed = isAllowed
    self.known = known
  }

  /// `'Emial' (nearest: Email)`
  package func description(of name: String) -> String {
    let nearest = Self.nearest(to: name, in: self.known)
    let place = self.places[name].map { " at \($0) of its expression" } ?? ""
    return "'\(name)'" + place
      + (nearest.isEmpty ? "" : " (nearest: \(nearest.joined(separator: ", ")))")
  }

  /// Up to three names that differ in case, in a few letters, or in a prefix or suffix.
  static func nearest(to name: String, in known: Set<String>) -> [String] {
    let wanted = name.lowercased()
    let candidates = known.compactMap { candidate -> (name: String, distance: Int)? in
      let other = candidate.lowercased()
      let (least, distance) = (min(wanted.count, other.count), editDistance(wanted, other))
      if distance <= max(1, least / 3) { return (candidate, distance) }
      let isPart = other.contains(wanted) || wanted.contains(other)
      return least >= 3 && isPart ? (candidate, 100 + distance) : nil
    }
    return candidates.sorted { ($0.distance, $0.name) < ($1.distance, $1.name) }
      .prefix(3).map(\.name)
  }
}
