import Pipeline
import RESTSource

/// How the stages in front of a sink affect the comparison of an object's records.
struct VerifyScope {
  /// The field that shows changes when values are not compared.
  static let changeField = "LastModifiedDate"

  /// The columns that decide whether stages keep a record; nil if stages compute some of them, so that
  /// all columns have to be read.
  private let deciding: Set<Int>?
  /// The copy has the change field as the org has it.
  let hasChangeField: Bool
  /// Conditions of stages that cannot be checked, with the reasons.
  let undecidable: [CopyFindings.LeftOut]

  /// - Parameters:
  ///   - layout: as decoded.
  ///   - unread: names of fields that REST does not return, `Parent.Child` for a part of a compound.
  ///   - sink: the sink's own stages.
  init(
    _ layout: RecordLayout, unread: Set<String>, through pipeline: StageChain, _ sink: StageChain
  ) throws {
    let output = try pipeline.layout(for: layout)
    let conditions = try pipeline.conditions(of: layout) + sink.conditions(of: output)
    let slots = conditions.reduce(into: Set<Int>()) { $0.formUnion($1.condition.slots) }
    self.deciding = slots.allSatisfy { $0 < layout.slotCount } ? slots : nil
    let unreadSlots = Self.slots(of: unread, in: layout)
    self.undecidable = conditions.compactMap { stage, condition in
      if condition.dropsReads {
        return CopyFindings.LeftOut(
          field: stage, reason: "it asks how a record was changed, which a read does not show")
      }
      let missing = unreadSlots.filter { condition.slots.contains($0.slot) }.map(\.name)
      guard !missing.isEmpty else { return nil }
      return CopyFindings.LeftOut(
        field: stage, reason: "it needs \(missing.joined(separator: ", ")), which cannot be read")
    }
    let changeSlots = Set(
      layout.columns.filter { $0.name == Self.changeField && !$0.isMetadata }.flatMap(\.slots))
    let concealed = try pipeline.concealedSlots(
      of: layout, behind: { try sink.concealedSlots(of: $0)[0] })[0]
    self.hasChangeField =
      !changeSlots.isEmpty && changeSlots.isDisjoint(with: concealed)
      && !unread.contains(Self.changeField)
  }

  /// Whether a column of the layout is read when values are not compared.
  var isListed: @Sendable (Column) -> Bool {
    { [isDeciding] column in column.name == Self.changeField || isDeciding(column) }
  }

  /// Whether a column of the layout decides if a record is kept.
  var isDeciding: @Sendable (Column) -> Bool {
    { [deciding] column in deciding.map { !$0.isDisjoint(with: column.slots) } ?? true }
  }

  /// The slots of some fields.
  private static func slots(
    of names: Set<String>, in layout: RecordLayout
  ) -> [(name: String, slot: Int)] {
    layout.columns.flatMap { column -> [(name: String, slot: Int)] in
      switch column.content {
      case .constant: []
      case .slot(let slot, _): [(column.path.joined(separator: "."), slot)]
      case .record(_, let scalar, let children):
        (scalar.map { [(column.path.joined(separator: "."), $0.slot)] } ?? [])
          + children.compactMap { child in
            guard case .slot(let slot, _) = child.content else { return nil }
            return (child.path.joined(separator: "."), slot)
          }
      }
    }.filter { names.contains($0.name) }
  }
}
