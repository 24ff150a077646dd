/// What the stage `cast` does to the rows of one layout.
struct CastPlan {
  struct Converted {
    var name: String
    var slot: Int
    var conversion: CastConversion
  }

  let output: RecordLayout
  let columns: [Converted]

  /// - Throws: `TransformError` for columns that cannot have the type.
  init(_ targets: [String: CastTarget], layout: RecordLayout) throws {
    var converted: [Converted] = []
    let columns = try layout.columns.map { column in
      guard let target = targets[column.name] else { return column }
      func refused(_ reason: String) -> TransformError {
        TransformError(
          .columnType,
          "stage \(Cast.type): column '\(column.name)' \(reason) (\(layout.origin))")
      }
      if column.isMetadata { throw refused("is a metadata column, whose type stays") }
      switch column.content {
      case .record: throw refused("is a record; flatten it first")
      case .constant: throw refused("is a constant of the stage 'set'; state its type there")
      case .slot(let slot, let type):
        guard let conversion = CastConversion(of: type, to: target) else {
          throw refused("is \(type.words), which cannot become \(target.name)")
        }
        converted.append(Converted(name: column.name, slot: slot, conversion: conversion))
        var column = column
        column.content = .slot(slot, conversion.output)
        column.salesforceType = nil
        return column
      }
    }
    self.columns = converted
    self.output = layout.with(columns: columns)
  }
}
