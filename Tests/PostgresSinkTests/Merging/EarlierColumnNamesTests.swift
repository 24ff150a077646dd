import TestSupport
import Testing

@testable import PostgresSink

/// By what `TableEvolution` writes into the journal.
@Suite("Names of columns before they were renamed")
struct EarlierColumnNamesTests {
  private static func schema(_ id: String) -> EarlierColumnNames.Entry {
    EarlierColumnNames.Entry(action: "schema", detail: "first seen", schemaID: id)
  }

  private static func rename(_ detail: String, by schema: String) -> EarlierColumnNames.Entry {
    EarlierColumnNames.Entry(action: "rename_column", detail: detail, schemaID: schema)
  }

  @Test("Without a rename, each schema means the current name")
  func none() {
    let names = EarlierColumnNames(["stage", "amount"], journal: [Self.schema("1")])
    #expect(names.areToday)
    #expect(names.column("amount", schemaID: "1") == 1)
    #expect(names.column("amount", schemaID: nil) == 1)
    #expect(names.column("gone", schemaID: "1") == nil)
  }

  @Test("After a field changed its type, each schema means its own column")
  func changed() {
    let names = EarlierColumnNames(
      ["amount__float8", "amount", "stage"],
      journal: [
        Self.schema("1"), Self.rename("amount to amount__float8", by: "2"), Self.schema("2"),
        Self.schema("3"),
      ])
    #expect(!names.areToday)
    #expect(names.column("amount", schemaID: "1") == 0)
    #expect(names.column("amount__float8", schemaID: "1") == 0)
    #expect(names.column("stage", schemaID: "1") == 2)
    for schema in ["2", "3", "unknown"] {
      #expect(names.column("amount", schemaID: schema) == 1)
    }
  }

  @Test("A field that returns to its first type, and then gets a third, finds its columns")
  func back() {
    let names = EarlierColumnNames(
      ["amount__float8", "amount__text", "amount"],
      journal: [
        Self.schema("1"), Self.rename("amount to amount__float8", by: "2"), Self.schema("2"),
        Self.rename("amount to amount__text", by: "3"),
        Self.rename("amount__float8 to amount", by: "3"), Self.schema("3"),
        Self.rename("amount to amount__float8", by: "4"), Self.schema("4"),
      ])
    for (schema, column) in [("1", 0), ("2", 1), ("3", 0), ("4", 2)] {
      #expect(names.column("amount", schemaID: schema) == column, "schema \(schema)")
    }
    // What is read again was given the name of that time.
    #expect(names.column("amount__float8", schemaID: "1") == 0)
    #expect(names.column("amount__text", schemaID: "2") == 1)
  }

  @Test("Names with separator words and columns that no longer exist are handled")
  func unusual() {
    let names = EarlierColumnNames(
      ["from to when__text", "from to when"],
      journal: [
        Self.schema("1"), Self.rename("from to when to from to when__text", by: "2"),
        Self.schema("2"),
      ])
    #expect(names.column("from to when", schemaID: "1") == 0)
    #expect(names.column("from to when", schemaID: "2") == 1)
    let gone = EarlierColumnNames(
      ["amount"], journal: [Self.schema("1"), Self.rename("amount to amount__float8", by: "2")])
    #expect(gone.column("amount", schemaID: "1") == nil)
    #expect(gone.column("amount__float8", schemaID: "1") == nil)
  }

  /// A field that one schema has written as another type than before, as after a change of contract:
  /// its later events count.
  @Test("A known schema whose column was renamed means the new column")
  func ownRenaming() {
    let names = EarlierColumnNames(
      ["amount__text", "amount"],
      journal: [Self.schema("1"), Self.schema("2"), Self.rename("amount to amount__text", by: "2")])
    #expect(names.column("amount", schemaID: "1") == 0)
    #expect(names.column("amount", schemaID: "2") == 1)
  }
}
