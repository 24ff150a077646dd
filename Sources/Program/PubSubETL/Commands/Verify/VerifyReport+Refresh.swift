import JSON
import Pipeline
import RESTSource

extension VerifyReport {
  /// Fields that neither events nor the pipeline's refreshes keep current, sorted: formulas and
  /// roll-ups of the copies, and fields that differ although their records are there.
  var unrefreshed: [String] {
    var missing: Set<String> = []
    for entry in self.entries {
      let calculated = Set(entry.blind.calculated)
      let covered = self.refresh?.refresh(of: entry.entity).map { $0.fields ?? calculated } ?? []
      let fields = calculated.union(entry.findings.fields.map(\.field))
      for field in fields.intersection(entry.columns).subtracting(covered) {
        missing.insert("\(entry.entity).\(field)")
      }
    }
    return missing.sorted()
  }

  /// Says how often the proposed line reads the fields.
  var refreshInterval: String {
    let every = (self.refresh ?? RefreshConfiguration()).every
    return every == .seconds(24 * 3600)
      ? "once a day" : "every \(JSONReader.text(duration: every))"
  }

  /// A value of `source.refresh` for these fields and those that the pipeline refreshes already. Nil
  /// if it refreshes all of them.
  var proposedRefresh: JSONValue? {
    var missing = Set(self.unrefreshed)
    guard !missing.isEmpty else { return nil }
    switch self.refresh?.fields {
    case .listed(let fields):
      for (entity, names) in fields { for name in names { missing.insert("\(entity).\(name)") } }
    case .blind:
      for entry in self.entries {
        for name in entry.blind.calculated where entry.columns.contains(name) {
          missing.insert("\(entry.entity).\(name)")
        }
      }
    case nil: break
    }
    let every = (self.refresh ?? RefreshConfiguration()).every
    return [
      "fields": .array(missing.sorted().map { .string($0) }),
      "every": .string(JSONReader.text(duration: every)),
    ]
  }
}
