/// The slots that changes of a model may affect, determined once so that names are not compared per
/// event.
struct ChangePlan: Sendable {
  /// How a slot is filled when a record is created.
  struct Creation: Sendable {
    var parent: Int?
    var isOfPersons: Bool
    /// Never null, neither at first nor later.
    var isAlways: Bool
  }

  /// Per slot; nil for compound fields.
  private(set) var kinds: [ValueKind?] = []
  /// Per slot.
  private(set) var creations: [Creation] = []
  /// Top-level slots that an update may change.
  private(set) var candidates: [Int] = []
  private(set) var longTexts: [Int] = []
  private(set) var addresses: [Int] = []
  /// Plain scalar slots, which several records may change alike.
  private(set) var mergeable: [Int] = []
  /// Slots that are computed of others.
  private(set) var formulas: [(slot: Int, source: Int)] = []
  private(set) var modifiedDate: Int?
  private(set) var modifiedBy: Int?
  private(set) var name: Int?
  /// Whether records are person accounts or business accounts.
  let hasPersons: Bool

  /// - Parameter hasTrueBooleans: booleans are never null, as the API has them.
  init(_ model: EntityModel, hasTrueBooleans: Bool = false) {
    self.hasPersons = model.entity == "Account"
    for (index, slot) in model.slots.enumerated() {
      self.kinds.append(slot.kind)
      let isOfPersons =
        slot.path.hasSuffix("__pc") || (self.hasPersons && slot.path.hasPrefix("Person"))
      self.creations.append(
        Creation(
          parent: slot.parent, isOfPersons: isOfPersons,
          isAlways: ["Name", "LastName", "StageName", "OwnerId"].contains(slot.name)
            || hasTrueBooleans && slot.kind == .boolean))
      guard slot.parent == nil else { continue }
      if slot.name == "Name" { self.name = index }
      switch slot.kind {
      case .modifiedDate: self.modifiedDate = index
      case .modifiedBy: self.modifiedBy = index
      case .createdDate, .createdBy: break
      case .formula(let source, _): self.formulas.append((slot: index, source: source))
      case .longText, .richText:
        self.longTexts.append(index)
        self.candidates.append(index)
      case nil:
        self.candidates.append(index)
        if slot.name.hasSuffix("Address"), !isOfPersons { self.addresses.append(index) }
      default:
        self.candidates.append(index)
        if slot.name != "Name", slot.name != "StageName", slot.name != "OwnerId", !isOfPersons {
          self.mergeable.append(index)
        }
      }
    }
  }
}
