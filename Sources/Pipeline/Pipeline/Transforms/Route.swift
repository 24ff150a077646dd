internal import CEL
package import JSON

/// Sends rows to some of the sinks:
/// `{"type": "route", "routes": [{"where": "_entity == 'Account'", "to": ["accounts"]}], "default": ["rest"]}`.
///
/// The first route whose condition holds takes the row; `default` takes the rest. The stage notes
/// the route in a separate slot; `RouteFilter`, which runs before the stages of each sink, keeps
/// the rows for that sink. So each condition is evaluated once, and a failing condition sends the
/// event to the dead letters for all sinks.
package final class Route: ConfiguredTransform {
  package static let type = "route"
  package static let schemaDescription =
    "Sends rows to some of the sinks: to those of the first route whose condition holds, the rest to "
    + "'default'. The last of the pipeline's stages."

  package struct Options: KeyedObject, Sendable {
    fileprivate var rules: [RuleOptions] = []
    fileprivate var rest: [String] = []
    fileprivate var keepsReads = true
    fileprivate var missing: ColumnNames.Missing?

    package init() {}

    package static var keys: [Key<Self>] {
      [
        .required(
          "routes", \.rules, .rules, "In the order of their precedence.",
          example: [["where": "_entity == 'Account'", "to": ["accounts"]]]),
        .required(
          "default", \.rest, .strings(.list(of: .text(minLength: 1), isUnique: true)),
          "Names of the sinks for rows that no route takes; empty for none.", example: ["rest"]),
        .snapshot(\.keepsReads),
        .missing(\.missing),
      ]
    }
  }

  struct Rule {
    /// Nil for a rule that names objects.
    var condition: StageExpression?
    var entities: Set<String>
    var sinks: [String]
  }

  /// Each rule has a bit in a row's cell, and so does the default.
  fileprivate static let maxCount = 63

  private let rules: [Rule]
  private let options: Options
  private let columns: ColumnNames
  private var reaches = LayoutCache<Reach>()

  package init(_ options: Options) {
    self.rules = options.rules.map { rule in
      Rule(
        condition: rule.condition.map { StageExpression($0) }, entities: Set(rule.entities ?? []),
        sinks: rule.sinks)
    }
    self.options = options
    self.columns = ColumnNames(
      options.rules.compactMap(\.condition).flatMap(\.names), missing: options.missing)
  }

  package var sinks: [String]? {
    var seen: Set<String> = []
    return (self.rules.flatMap(\.sinks) + self.options.rest).filter { seen.insert($0).inserted }
  }

  package var conditionNames: Set<String> { self.columns.names }

  package var namedColumns: NamedColumns? {
    self.columns.named(by: Self.type, at: self.rules.compactMap(\.condition))
  }
  package var readsAcrossColumns: Bool { true }
  package var changesRows: Bool { true }

  package func layout(for input: RecordLayout) throws -> RecordLayout {
    try self.columns.match(input, stage: Self.type)
    for rule in self.rules { try rule.condition?.checkIsCondition(for: input, stage: Self.type) }
    let output = input.addingRouteSlot()
    _ = self.reach(of: output)
    return output
  }

  /// The rules that may take rows of a layout, as far as that is known without rows.
  private struct Reach {
    var ofRows: UInt64
    /// The rules for lines about a whole object.
    var ofOverflow: UInt64
    var ofWildcard: UInt64
  }

  private func reach(of layout: RecordLayout) -> Reach {
    if let known = self.reaches[layout] { return known }
    let known = layout.knownTexts
    let kind = layout.columns.first { column in
      if case .slot(MetadataSlot.kind, _) = column.content { true } else { false }
    }?.name
    func reach(_ value: EventKind) -> UInt64 {
      self.rules(
        thatMayTake: layout.entity,
        kind.map { known.merging([$0: value.name]) { $1 } } ?? known)
    }
    let reach = Reach(
      ofRows: self.rules(thatMayTake: layout.entity, known), ofOverflow: reach(.overflow),
      ofWildcard: reach(.wildcard))
    self.reaches.insert(reach, for: layout)
    return reach
  }

  /// - Returns: the same as `rules(for:)` for a row about which nothing more is known.
  private func rules(thatMayTake entity: String, _ known: [String: String]) -> UInt64 {
    var rules: UInt64 = 0
    for (index, rule) in self.rules.enumerated() {
      let outlook =
        rule.condition?.outlook(known) ?? (rule.entities.contains(entity) ? .always : .never)
      if outlook != .never { rules |= 1 << index }
      if outlook == .always { return rules }
    }
    return rules | 1 << self.rules.count
  }

  package func unreachableRoutes(among entities: [String]) -> [(rule: Int, reason: String)] {
    var found: [(rule: Int, reason: String)] = []
    let choices = entities.joined(separator: ", ")
    for (index, rule) in self.rules.enumerated() {
      for entity in rule.entities.sorted() where !entities.contains(entity) {
        found.append(
          (index, "no topic of the pipeline brings '\(entity)'; its objects: \(choices)"))
      }
      guard let condition = rule.condition, condition.names.contains(Self.entityColumn) else {
        continue
      }
      if entities.allSatisfy({ condition.outlook([Self.entityColumn: $0]) == .never }) {
        found.append(
          (index, "\(condition.shown) holds for no object of the pipeline: \(choices)"))
      }
    }
    return found
  }

  private static let entityColumn = "_entity"

  package func condition(for output: RecordLayout) throws -> StageCondition? {
    let conditions = try self.rules.compactMap {
      try $0.condition?.compiled(for: output, stage: Self.type)
        .condition(keepsReads: self.options.keepsReads)
    }
    return StageCondition(
      slots: conditions.reduce(into: []) { $0.formUnion($1.slots) },
      dropsReads: conditions.contains(where: \.dropsReads))
  }

  package func apply(to batch: RecordBatch) throws {
    guard let slot = batch.layout.routeSlot else {
      preconditionFailure("\(batch.layout.origin): a layout that this stage has not made")
    }
    let conditions = try self.rules.map {
      try $0.condition?.compiled(for: batch.layout, stage: Self.type)
    }
    let reach = self.reach(of: batch.layout)
    for (index, event) in batch.events.enumerated() {
      for number in event.firstRow..<event.firstRow + event.rowCount {
        let row = batch.row(number)
        switch self.rules(for: row, event, of: batch, conditions, reach) {
        case .success(let rules): row.set(slot, to: rules)
        case .failure(let failure): batch.refuse(event: index, reason: failure.reason)
        }
      }
    }
  }

  private struct Refusal: Error {
    var reason: String
  }

  /// - Returns: the bit of the first rule that takes the row, or the bit after the last rule if
  ///   none does. A line about a whole object has a bit for every rule that may take a row of the
  ///   object.
  private func rules(
    for row: RecordBatch.Row, _ event: RecordBatch.Event, of batch: RecordBatch,
    _ conditions: [RowExpression?], _ reach: Reach
  ) -> Result<UInt64, Refusal> {
    let character = RowCharacter(of: event, row)
    if character.kind.isOfWholeObject {
      return .success(character.kind == .wildcard ? reach.ofWildcard : reach.ofOverflow)
    }
    switch self.rule(for: row, character, of: batch, conditions) {
    case .success(let rule):
      guard reach.ofRows & 1 << rule != 0 else {
        // The sinks of the other object are not prepared for rows of this schema.
        return .failure(
          Refusal(
            reason: "the event's header names another object than its schema, "
              + batch.layout.entity))
      }
      return .success(1 << rule)
    case .failure(let refusal): return .failure(refusal)
    }
  }

  private func rule(
    for row: RecordBatch.Row, _ character: RowCharacter, of batch: RecordBatch,
    _ conditions: [RowExpression?]
  ) -> Result<Int, Refusal> {
    for (index, condition) in conditions.enumerated() {
      guard let condition else {
        if self.rules[index].entities.contains(batch.layout.entity) { return .success(index) }
        continue
      }
      switch RowCondition.verdict(condition, row, character, of: batch) {
      case .holds(true): return .success(index)
      case .holds(false): continue
      case .absent:
        if character.kind == .snapshot, condition.readsChange, self.options.keepsReads {
          return .success(index)
        }
      case .failed(let reason): return .failure(Refusal(reason: "route \(index): \(reason)"))
      }
    }
    return .success(conditions.count)
  }

  package func filter(for sink: String) -> (any Transform)? {
    let sinks = self.rules.map(\.sinks) + [self.options.rest]
    return RouteFilter(
      sinks.enumerated().reduce(0) { $1.element.contains(sink) ? $0 | 1 << $1.offset : $0 },
      of: self)
  }

  /// Whether one of some rules may take a row of a layout that this stage has made.
  fileprivate func mayTake(_ layout: RecordLayout, by rules: UInt64) -> Bool {
    let reach = self.reach(of: layout)
    return (reach.ofRows | reach.ofOverflow | reach.ofWildcard) & rules != 0
  }
}

/// Keeps the rows that the stage `route` has sent to one sink. Lines about a whole object go to
/// every sink that rows of the object can reach.
final class RouteFilter: Transform {
  /// One bit per rule; the default comes last.
  private let rules: UInt64
  private let route: Route

  init(_ rules: UInt64, of route: Route) {
    self.rules = rules
    self.route = route
  }

  var readsAcrossColumns: Bool { true }
  var changesRows: Bool { true }
  var leavesOutRows: Bool { true }
  var kind: String { Route.type }
  func layout(for input: RecordLayout) throws -> RecordLayout { input }
  func bringsRows(of input: RecordLayout) -> Bool { self.route.mayTake(input, by: self.rules) }

  func apply(to batch: RecordBatch) throws {
    guard let slot = batch.layout.routeSlot else {
      preconditionFailure("\(batch.layout.origin): rows that have not passed the stage 'route'")
    }
    batch.keepRows { row, _ in row.value(slot).map { $0 & self.rules != 0 } ?? false }
  }
}

extension Route {
  /// A route as its object means it.
  fileprivate struct RuleOptions: KeyedObject {
    var condition: ExpressionText?
    var entities: [String]?
    var sinks: [String] = []

    static var keys: [Key<Self>] {
      [
        .key(
          "where", \.condition, .expression, "CEL expression of type bool.",
          example: "_entity == 'Account'"),
        .key(
          "entity", \.entities, .entities, "API names of objects, or of one.",
          example: ["Account", "Contact"]),
        .required(
          "to", \.sinks, .strings(.list(of: .text(minLength: 1), minCount: 1, isUnique: true)),
          "Names of sinks.", example: ["accounts"]),
      ]
    }

    /// By condition, or by name.
    static var forms: [[KeyDeclaration]] {
      let keys = Self.declarations
      return [[keys[0].alone, keys[2]], [keys[1].alone, keys[2]]]
    }

    func check(_ reader: JSONReader) {
      if reader.any("to")?.array?.isEmpty == true { reader.report("to", "does not name a sink") }
      if reader.has("where") == reader.has("entity") {
        reader.report("where", "a route needs either 'where' or 'entity'")
      }
      if self.entities?.isEmpty == true { reader.report("entity", "does not name an object") }
    }
  }

  static var schemaDefinitions: [(name: String, schema: JSONSchema)] {
    [("route", .oneOf(RuleOptions.forms.map { .object($0) }))]
  }
}

extension Kind<[String]> {
  fileprivate static var entities: Self {
    Self(
      .oneOf([
        .text(minLength: 1), .list(of: .text(minLength: 1), minCount: 1, isUnique: true),
      ])
    ) { reader, name, _ in
      reader.any(name)?.string.map { [$0] } ?? reader.strings(name)
    }
  }
}

extension Kind<[Route.RuleOptions]> {
  fileprivate static var rules: Self {
    Self(.list(of: .reference("route"), minCount: 1), objects: Route.RuleOptions.forms) {
      reader, name, isRequired in
      guard let objects = reader.objects(name, required: isRequired) else { return nil }
      if objects.isEmpty { reader.report(name, "does not have a route") }
      if objects.count > Route.maxCount {
        reader.report(name, "expected at most \(Route.maxCount) routes, found \(objects.count)")
      }
      let rules = objects.compactMap { $0.read(Route.RuleOptions.keys) }
      return rules.count == objects.count ? rules : nil
    }
  }
}
