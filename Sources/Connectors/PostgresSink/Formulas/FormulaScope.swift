internal import Formulas
internal import PostgresClient

/// The fields that formulas of an object can refer to, by the names of relationships. Notes the tables
/// that the translations need.
final class FormulaScope: FormulaFields {
  typealias Object = FormulaSources.Object

  struct Join: Equatable {
    var alias: String
    /// SQL: the table with its condition.
    var sql: String
  }

  static let root = "_t"

  private let entity: String
  private let sources: FormulaSources
  private let bookkeeping: Bookkeeping
  /// By the names of relationships in lowercase letters, joined by points.
  private var joins: [String: Join] = [:]
  /// In the order of their conditions.
  private(set) var joined: [Join] = []
  /// Objects that have not been read yet.
  private(set) var missing: Set<String> = []

  init(_ entity: String, _ sources: FormulaSources, _ bookkeeping: Bookkeeping) {
    self.entity = entity
    self.sources = sources
    self.bookkeeping = bookkeeping
  }

  private struct Place {
    var object: Object
    var alias: String
  }

  func field(at path: [String]) throws(FormulaRefusal) -> FormulaField {
    guard let last = path.last, path.allSatisfy({ !$0.isEmpty }), path.count <= 11 else {
      throw FormulaRefusal("'\(path.joined(separator: ".").prefix(80))' is not a field")
    }
    var place = Place(object: try self.object(self.entity), alias: Self.root)
    for end in path.indices.dropLast() {
      place = try self.follow(Array(path[...end]), from: place)
    }
    return try self.field(last, in: place, path)
  }

  private func object(_ entity: String) throws(FormulaRefusal) -> Object {
    guard let known = self.sources.objects[entity] else {
      self.missing.insert(entity)
      throw FormulaRefusal("\(entity) has not been read")
    }
    guard let object = known else { throw FormulaRefusal("\(entity) is not copied") }
    return object
  }

  // MARK: Relationships

  /// - Parameter path: ends with the relationship: `Owner`, `Owner:User`, `Parent__r`.
  private func follow(_ path: [String], from place: Place) throws(FormulaRefusal) -> Place {
    let parts = (path.last ?? "").split(separator: ":", maxSplits: 1).map(String.init)
    let name = parts.first ?? ""
    let key =
      name.lowercased().hasSuffix("__r")
      ? name.dropLast(3) + "__c" : name + "Id"
    guard let field = place.object.fields[key.lowercased()], field.type == "reference" else {
      throw FormulaRefusal("relationship \(name) is not known")
    }
    let targets =
      parts.count > 1
      ? field.references.filter { $0.lowercased() == parts[1].lowercased() } : field.references
    guard let target = targets.first, targets.count == 1 else {
      throw FormulaRefusal("relationship \(name) can lead to different objects")
    }
    let object = try self.object(target)
    let column = try self.column(field, in: place.object)
    let joinKey = path.joined(separator: ".").lowercased()
    if let join = self.joins[joinKey] { return Place(object: object, alias: join.alias) }
    let alias = "_r\(self.joined.count + 1)"
    let table = self.bookkeeping.qualified(object.table)
    let join = Join(
      alias: alias,
      sql: "LEFT JOIN \(table) AS \(alias) ON \(alias).id = "
        + "\(place.alias).\(SQLIdentifier.quoted(column.name)) AND \(alias)._deleted_at IS NULL")
    self.joins[joinKey] = join
    self.joined.append(join)
    return Place(object: object, alias: alias)
  }

  // MARK: Fields

  private func column(
    _ field: FormulaSources.Field, in object: Object
  ) throws(FormulaRefusal) -> FormulaSources.ColumnOfField {
    guard let column = object.columns[field.name.lowercased()] else {
      throw FormulaRefusal("field \(field.name) is not copied")
    }
    switch column.state {
    case .complete, .filling, .notReadable: return column
    case .hidden: throw FormulaRefusal("the user may not see field \(field.name)")
    case .withoutEvents:
      throw FormulaRefusal("field \(field.name) changes without events")
    case .gone: throw FormulaRefusal("field \(field.name) is deleted")
    }
  }

  private func field(
    _ name: String, in place: Place, _ path: [String]
  ) throws(FormulaRefusal) -> FormulaField {
    guard let field = place.object.fields[name.lowercased()] else {
      throw FormulaRefusal("field \(name.prefix(80)) is not known")
    }
    guard let type = FormulaType(described: field.type) else {
      throw FormulaRefusal("field \(field.name) is of type \(field.type)")
    }
    if let formula = field.formula {
      return FormulaField(
        .formula(
          Formula(formula, type, treatsBlankAsZero: field.treatsBlankAsZero),
          path: path.dropLast()), type)
    }
    if field.name == "Name", place.object.nameParts["LastName"] != nil {
      return FormulaField(.column(self.fullName(in: place)), .text)
    }
    let column = try self.column(field, in: place.object)
    let sql = "\(place.alias).\(SQLIdentifier.quoted(column.name))"
    return FormulaField(
      .column(try Self.value(sql, column.type, type, field)), type,
      hasOtherLabels: field.hasOtherLabels)
  }

  /// SQL: the name as `_live` composes it.
  private func fullName(in place: Place) -> String {
    let parts = ["FirstName", "MiddleName", "LastName", "Suffix"].compactMap {
      place.object.nameParts[$0]
    }.map { "nullif(\(place.alias).\(SQLIdentifier.quoted($0.name)), '')" }
    let composed = "nullif(concat_ws(' ', \(parts.joined(separator: ", "))), '')"
    // A business account has a plain name, a person account only the parts.
    guard let own = place.object.columns["name"] else { return composed }
    return "coalesce(\(place.alias).\(SQLIdentifier.quoted(own.name)), \(composed))"
  }

  /// SQL: a column as the translation takes it.
  private static func value(
    _ sql: String, _ column: PostgresType, _ type: FormulaType, _ field: FormulaSources.Field
  ) throws(FormulaRefusal) -> String {
    switch (type, column) {
    // Events have CR LF where REST has LF.
    case (.text, .text) where field.type == "textarea":
      return "replace(\(sql), chr(13) || chr(10), chr(10))"
    case (.text, .text), (.id, .text), (.picklist, .text), (.boolean, .boolean), (.date, .date),
      (.dateTime, .timestamptz), (.time, .time), (.multiPicklist, .textArray):
      return sql
    case (.number, .numeric), (.percent, .numeric): return sql
    case (.number, .integer), (.number, .bigint), (.number, .smallint), (.percent, .integer),
      (.percent, .bigint), (.percent, .smallint):
      return "\(sql)::numeric"
    // With all digits of the number, as REST writes it.
    case (.number, .doublePrecision), (.percent, .doublePrecision):
      return "NULLIF(NULLIF(\(sql), 'Infinity'), '-Infinity')::text::numeric"
    default:
      throw FormulaRefusal(
        "field \(field.name), a \(field.type), has a column of type \(column.sqlName)")
    }
  }
}
