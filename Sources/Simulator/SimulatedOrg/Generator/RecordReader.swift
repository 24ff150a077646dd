/// Makes the current values of one object's records.
struct RecordReader {
  let model: EntityModel
  let plan: ChangePlan
  let values: ValueSource
  /// IDs, by the numbers that records have for users.
  let users: [[UInt8]]
  /// The values of a sales team's records; nil for random ones.
  var known: ValueTable?

  /// The value of a slot; text goes into the image's arena.
  func cell(
    _ table: RecordTable, _ record: Int, _ slot: Int, into image: inout EventImage
  ) -> Cell {
    let state = table.records[record]
    switch self.plan.kinds[slot] {
    case .createdDate: return .long(state.createdAt)
    case .createdBy: return image.text(self.users[state.createdBy])
    case .modifiedDate: return .long(state.modifiedAt)
    case .modifiedBy: return image.text(self.users[state.modifiedBy])
    case .formula(let source, let edition):
      guard case .double(let value) = self.cell(table, record, source, into: &image) else {
        return .null
      }
      // Formulas have a percentage as a share.
      let share = self.plan.kinds[source] == .percent ? value / 100 : value
      return .double(share / 2 + Double(edition * Int(state.hash % 4)))
    case let kind:
      let version = table[record, slot]
      guard version != 0 else { return .null }
      if let known = self.known { return known.cell(version, kind, into: &image) }
      guard let kind else {
        let isPlainName = self.plan.hasPersons && slot == self.plan.name && !state.isPerson
        guard isPlainName else { return .record }
        return self.values.cell(
          .text, record: state.hash, slot: slot, version: version, into: &image)
      }
      return self.values.cell(kind, record: state.hash, slot: slot, version: version, into: &image)
    }
  }
}
