package import Pipeline
package import SalesforceREST

/// Which fields of an object fill which cells of its event rows: the fields that are in both the
/// event schema and the describe result.
///
/// Names follow ChangeEvents.md#compound-fields: `BillingAddress.City` is `BillingCity`,
/// `Name.FirstName` is `FirstName`, `Loc__c.Latitude` is `Loc__Latitude__s`. Fields that the event
/// schema lacks are not read, because no event would keep them up to date.
package struct SnapshotPlan: Sendable, Equatable {
  /// The destination of a field's text.
  struct Step: Sendable, Equatable {
    /// Index in `fields`.
    var field: Int
    var slot: Int
    var type: ColumnType
    /// The compound to which the value belongs, and whose presence it shows.
    var compound: Int?
  }

  /// A compound field.
  struct Compound: Sendable, Equatable {
    /// The slot of its presence.
    var slot: Int
    /// For a union of a text and a record (Account.Name), the text's slot. It gets the value unless
    /// a last name shows that the record is a person.
    var scalar: Int?
    /// The index in `fields` of the component that only a person has.
    var personField: Int?
  }

  /// A field of the schema that is not read, and why.
  package struct Unread: Sendable, Equatable {
    package enum Reason: Sendable, Equatable {
      /// The user may not see it, or it no longer exists.
      case notDescribed
      /// No field of REST fits the schema's type.
      case type(String)
    }

    /// `Parent.Child` for a part of a compound.
    package var name: String
    package var reason: Reason
  }

  /// API name of the object.
  package let object: String
  /// The first characters of the records' IDs; nil if unknown.
  let keyPrefix: String?
  /// The fields to select, in this order: `Id`, `SystemModstamp` or what an object has instead, then
  /// the fields of the schema.
  package let fields: [String]
  package let unread: [Unread]
  /// The index in `fields` of the field that says whether a record is deleted; nil if it is not
  /// read.
  let deletedField: Int?
  /// A field is another kind of date or time than the schema says: its type has changed, and the
  /// schema kept its ID (EventSchemas.md#schema-id).
  package let isOfOutdatedSchema: Bool
  let steps: [Step]
  let compounds: [Compound]

  static let idField = 0
  static let stampField = 1
  var stampName: String { self.fields[Self.stampField] }

  /// - Parameters:
  ///   - layout: the layout of the object's events as decoded, before any stage.
  ///   - isRead: whether to read a column of the layout; nil reads all.
  ///   - findsDeleted: deleted records are read too, if the object keeps them.
  package init(
    _ layout: RecordLayout, _ object: ObjectDescription, isRead: ((Column) -> Bool)? = nil,
    findsDeleted: Bool = false
  ) {
    var builder = Builder(object)
    for column in layout.columns where !column.isMetadata && isRead?(column) ?? true {
      builder.add(column)
    }
    self.object = object.name
    self.keyPrefix = object.keyPrefix
    let keepsDeleted = findsDeleted && object.field("IsDeleted") != nil
    self.deletedField = keepsDeleted ? builder.fields.count : nil
    self.fields = builder.fields + (keepsDeleted ? ["IsDeleted"] : [])
    self.unread = builder.unread
    self.isOfOutdatedSchema = builder.isOfOutdatedSchema
    self.steps = builder.steps
    self.compounds = builder.compounds
  }

  /// Dotted names of the fields of a refresh that are read.
  func readFields(
    of layout: RecordLayout, _ refresh: Refresh, _ object: ObjectDescription
  ) -> Set<String> {
    let wanted = refresh.fields ?? object.calculatedFields
    return Set(
      layout.fieldNames.filter { name in
        wanted.contains(name.split(separator: ".").first.map { String($0) } ?? name)
      }
    ).subtracting(self.unread.map(\.name))
  }

  private struct Builder {
    let described: [String: ObjectDescription.Field]
    var fields: [String]
    var steps: [Step] = []
    var compounds: [Compound] = []
    var unread: [Unread] = []
    var isOfOutdatedSchema = false

    init(_ object: ObjectDescription) {
      self.fields = ["Id", object.stampField]
      self.described = Dictionary(
        object.fields.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
    }

    mutating func add(_ column: Column) {
      switch column.content {
      case .constant: break
      case .slot(let slot, let type):
        self.read(column.name, column.path, slot, type, compound: nil)
      case .record(let slot, let scalar, let children):
        let index = self.compounds.count
        self.compounds.append(Compound(slot: slot, scalar: scalar?.slot))
        for child in children {
          let name = FlattenNaming.sobject.name(of: child.name, in: column.name)
          guard case .slot(let slot, let type) = child.content else {
            self.leaveOut(child.path, .type("record"))
            continue
          }
          self.read(name, child.path, slot, type, compound: index)
          if child.name == "LastName", scalar != nil {
            self.compounds[index].personField = self.fields.firstIndex(of: name)
          }
        }
        if let scalar {
          self.read(column.name, column.path, scalar.slot, scalar.type, compound: nil)
        }
      }
    }

    private mutating func read(
      _ name: String, _ path: [String], _ slot: Int, _ type: ColumnType, compound: Int?
    ) {
      guard let field = self.described[name] else { return self.leaveOut(path, .notDescribed) }
      let isSameTime = Self.isSameTime(type, field.type)
      if !isSameTime { self.isOfOutdatedSchema = true }
      guard !field.isCompound, TextValue.canRead(type), isSameTime else {
        return self.leaveOut(path, .type(field.type))
      }
      let index = self.fields.firstIndex(of: name) ?? self.fields.count
      if index == self.fields.count { self.fields.append(name) }
      self.steps.append(Step(field: index, slot: slot, type: type, compound: compound))
    }

    /// Whether a field that is a date or time now is of the kind that the schema says, which may be
    /// outdated (EventSchemas.md#schema-id). Other kinds have another schema ID.
    private static func isSameTime(_ type: ColumnType, _ described: String) -> Bool {
      let kinds = ["date", "datetime", "time"]
      let kind: String
      switch type {
      case .date: kind = "date"
      case .timestamp: kind = "datetime"
      case .time: kind = "time"
      default: return true
      }
      return !kinds.contains(described) || kind == described
    }

    private mutating func leaveOut(_ path: [String], _ reason: Unread.Reason) {
      self.unread.append(Unread(name: path.joined(separator: "."), reason: reason))
    }
  }
}
