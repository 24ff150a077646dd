import JSON
import Pipeline
import RESTSource

extension VerifyReport {
  /// A value of `source.refresh` for fields that no event keeps current: formulas and roll-ups of the
  /// copies, and fields that differ although their records are there. Nil if the pipeline refreshes
  /// all of them.
  var proposedRefresh: JSONValue? {
    var missing: Set<String> = []
    for entry in self.entries {
      let known = self.refresh?.refresh(of: entry.entity)
      var fields = Set(entry.findings.fields.map(\.field))
      if known?.fields != nil || known == nil { fields.formUnion(entry.blind.calculated) }
      fields.formIntersection(entry.columns)
      for field in fields.subtracting(known?.fields ?? []) {
        missing.insert("\(entry.entity).\(field)")
      }
    }
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
