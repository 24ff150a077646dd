internal import CEL

/// What the stage `set` does to the rows of one layout.
struct SetPlan {
  struct Step {
    var name: String
    var slot: Int
    var expression: RowExpression
    var result: ResultColumn
  }

  let output: RecordLayout
  let steps: [Step]

  /// The maximum number of columns that the expressions of a stage may read together, which takes
  /// about 30 MB. A column counts once for each expression that reads it.
  private static let maxReadCount = 1 << 18

  /// - Throws: `TransformError` for types that do not fit, and for columns that cannot be set.
  init(
    _ sources: [(name: String, source: SetColumns.Source)], run: RunValues, layout: RecordLayout
  ) throws {
    var columns = layout.columns
    var steps: [Step] = []
    var slotCount = layout.slotCount
    let fields = LayoutFields(layout)
    var readCount = 0
    for (name, source) in sources {
      let place = columns.firstIndex { $0.name == name }
      if let place { try Self.check(columns[place], layout) }
      let content: Column.Content
      switch source {
      case .text(let text): content = .constant(text)
      case .run(.pipeline): content = .constant(run.pipeline)
      case .run(.org): content = .constant(run.org)
      case .expression(let source, let type):
        let expression = try source.compiled(for: layout, stage: SetColumns.type, fields: fields)
        readCount += expression.program.columns.count
        guard readCount <= Self.maxReadCount else {
          throw source.error(
            "the expressions of the stage read more than \(Self.maxReadCount) columns in all; name the "
              + "columns instead of using 'row' as a whole", layout, stage: SetColumns.type)
        }
        // An expression whose columns the object lacks does not apply to it.
        if type == nil, expression.program.type == .dyn, !expression.program.unknownNames.isEmpty {
          continue
        }
        let result: ResultColumn
        do throws(ResultTypeError) {
          result = try ResultColumn(expression, stated: type)
        } catch {
          throw source.error("column '\(name)': \(error.message)", layout, stage: SetColumns.type)
        }
        // A field keeps its slot, under which `_changed_fields` lists it.
        var slot = slotCount
        if let place, case .slot(let own, _) = columns[place].content {
          slot = own
        } else {
          slotCount += 1
        }
        steps.append(Step(name: name, slot: slot, expression: expression, result: result))
        content = .slot(slot, result.type)
      }
      if let place {
        columns[place].content = content
        columns[place].salesforceType = nil
        columns[place].fieldID = nil
        columns[place].isMasked = false
      } else {
        var column = Column(name: name, path: [name], content: content)
        column.isComputed = true
        columns.append(column)
      }
    }
    self.steps = steps
    self.output = layout.adding(slots: slotCount - layout.slotCount).with(columns: columns)
  }

  private static func check(_ column: Column, _ layout: RecordLayout) throws {
    if column.isMetadata {
      throw TransformError(
        .reservedColumn,
        "stage \(SetColumns.type): '\(column.name)' is a metadata column, which cannot be set "
          + "(\(layout.origin)); choose another name")
    }
    if case .record = column.content {
      throw TransformError(
        .reservedColumn,
        "stage \(SetColumns.type): '\(column.name)' is a record, which cannot be set "
          + "(\(layout.origin)); flatten it first, or choose another name")
    }
  }
}
