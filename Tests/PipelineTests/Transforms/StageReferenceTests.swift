import TestSupport
import Testing

@testable import Pipeline

/// The stages against `ReferenceStage`, on random layouts, rows and chains.
@Suite("Stages and their reference")
struct StageReferenceTests {
  private static let types: [ColumnType] = [.string, .int64, .double, .boolean]
  private static let words = ["a", "b", ""]
  private static let origins: [(EventKind, String)] = [
    (.change, "UPDATE"), (.change, "UPDATE"), (.change, "CREATE"), (.change, "DELETE"),
    (.gap, "GAP_UPDATE"), (.snapshot, "SNAPSHOT"), (.overflow, "GAP_OVERFLOW"),
  ]

  @Test("Random chains of stages give what the reference gives for random rows", arguments: 0..<400)
  func chains(seed: Int) throws {
    var random = SplitMix(seed: UInt64(seed))
    var columns = (0..<Int.random(in: 1...12, using: &random)).map {
      ReferenceColumn(name: "F\($0)", type: Self.types.randomElement(using: &random) ?? .string)
    }
    let fixture = StageRows(columns.map { ($0.name, $0.type) })
    var rows: [ReferenceRow] = []
    for number in 0..<Int.random(in: 0...30, using: &random) {
      rows.append(self.row(number, columns, &random))
      fixture.add(
        StageRows.Row(
          kind: rows[number].kind, changeType: rows[number].changeType, cells: rows[number].cells))
    }
    var stages: [ReferenceStage] = []
    for number in 0..<Int.random(in: 1...6, using: &random) {
      let stage = self.stage(number, columns, &random)
      columns = stage.columns(columns)
      stages.append(stage)
    }
    let chain = try StageChain(json: stages.map(\.json))
    try chain.apply(to: fixture.batch)

    var kept: [ReferenceRow] = []
    var refused: Set<String> = []
    rows: for var row in rows {
      for stage in stages {
        switch stage.apply(&row) {
        case .kept: continue
        case .leftOut: continue rows
        case .refused:
          refused.insert(row.recordID)
          continue rows
        }
      }
      kept.append(row)
    }
    let context = stages.map(\.json).joined(separator: "\n")
    let told =
      chain.takeRefusedEvents().map { "001-\($0.ordinal)" }
      + chain.takeUnreadable().compactMap(\.recordID)
    #expect(Set(told) == refused, "\(context)")
    #expect(told.count == refused.count, "\(context)")
    try #require(fixture.recordIDs() == kept.map(\.recordID), "\(context)")
    for (number, row) in kept.enumerated() {
      for column in columns {
        #expect(
          fixture.value(column.name, ofRow: number) == row.cells[column.name] ?? .absent,
          "\(column.name) of \(row)\n\(context)")
      }
      guard row.isUpdate else { continue }
      #expect(
        Set(fixture.list(MetadataSlot.changedFields, ofRow: number)) == row.changed, "\(context)")
      #expect(
        Set(fixture.list(MetadataSlot.nulledFields, ofRow: number)) == row.nulled, "\(context)")
    }
  }

  private func row(
    _ number: Int, _ columns: [ReferenceColumn], _ random: inout SplitMix
  ) -> ReferenceRow {
    let origin = Self.origins.randomElement(using: &random) ?? (.change, "UPDATE")
    var row = ReferenceRow(
      kind: origin.0, changeType: origin.1, recordID: "001-\(number)", cells: [:])
    for column in columns {
      let value = self.value(column.type, &random)
      row.cells[column.name] = value
      guard row.isUpdate, value != .absent else { continue }
      row.changed.insert(column.name)
      if value == .null { row.nulled.insert(column.name) }
    }
    return row
  }

  private func value(_ type: ColumnType, _ random: inout SplitMix) -> CellValue {
    switch Int.random(in: 0..<6, using: &random) {
    case 0, 1: return .absent
    case 2: return .null
    default: break
    }
    switch type {
    case .int64: return .int(.random(in: -2...2, using: &random))
    case .double: return .double(Double(Int.random(in: -4...4, using: &random)) / 2)
    case .boolean: return .bool(.random(using: &random))
    default: return .text(Self.words.randomElement(using: &random) ?? "a")
    }
  }

  private func stage(
    _ number: Int, _ columns: [ReferenceColumn], _ random: inout SplitMix
  ) -> ReferenceStage {
    guard let column = columns.randomElement(using: &random) else {
      return .filter(
        ReferenceExpression(text: "true") { _ in .value(.bool(true)) }, keepsAbsent: true)
    }
    let fresh = "N\(number)"
    switch Int.random(in: 0..<6, using: &random) {
    case 0: return .rename(column.name, fresh)
    case 1 where columns.count > 1: return .drop(column.name)
    case 2, 3:
      let name = Bool.random(using: &random) ? fresh : column.name
      let (type, expression) = self.expression(column, &random)
      return .set(name, type, expression)
    default:
      let right = columns.randomElement(using: &random) ?? column
      let sides = [column, right].map { self.condition($0, &random) }
      let condition: ReferenceExpression =
        switch Int.random(in: 0..<3, using: &random) {
        case 0: .and(sides[0], sides[1])
        case 1: .or(sides[0], sides[1])
        default: sides[0]
        }
      return .filter(condition, keepsAbsent: .random(using: &random))
    }
  }

  private func expression(
    _ column: ReferenceColumn, _ random: inout SplitMix
  ) -> (ColumnType, ReferenceExpression) {
    if Int.random(in: 0..<3, using: &random) == 0 {
      return (.boolean, self.condition(column, &random))
    }
    switch column.type {
    case .int64 where Bool.random(using: &random): return (.int64, .plus(column.name, 7))
    case .string where Bool.random(using: &random): return (.string, .exclaimed(column.name))
    default: return (column.type, .column(column.name))
    }
  }

  private func condition(
    _ column: ReferenceColumn, _ random: inout SplitMix
  ) -> ReferenceExpression {
    switch Int.random(in: 0..<5, using: &random) {
    case 0: return .isNull(column.name)
    case 1: return .has(column.name)
    default: break
    }
    switch column.type {
    case .int64, .double: return .atLeast(column.name, "0.5", 0.5)
    case .boolean: return .column(column.name)
    default: return .equals(column.name, Self.words.randomElement(using: &random) ?? "a")
    }
  }
}
