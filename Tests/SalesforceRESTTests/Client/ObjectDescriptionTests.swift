import JSON
import Testing

@testable import SalesforceREST

@Suite("Descriptions of objects")
struct ObjectDescriptionTests {
  private static func field(_ members: String) throws -> ObjectDescription.Field {
    let object = try ObjectDescription(
      JSONValue(
        parsing: #"{"name":"Deal","fields":[{"name":"Stage","type":"picklist"\#(members)}]}"#),
      call: "describe")
    return object.fields[0]
  }

  @Test("What people need to know about a field")
  func members() throws {
    let field = try Self.field(
      #"""
      ,"label":"Stage","length":255,"referenceTo":["User","Group"],"calculatedFormula":"A +\nB",
      "inlineHelpText":"Ask \"them\"","picklistValues":[
      {"value":"New","label":"New deal","active":true,"defaultValue":true},
      {"value":"Old","label":null,"active":false,"defaultValue":false}]
      """#)
    #expect(field.length == 255 && field.references == ["User", "Group"])
    #expect(field.formula == "A +\nB" && field.helpText == "Ask \"them\"")
    #expect(
      field.choices == [
        ObjectDescription.Field.Choice(
          value: "New", label: "New deal", isActive: true, isDefault: true),
        ObjectDescription.Field.Choice(
          value: "Old", label: "Old", isActive: false, isDefault: false),
      ])
  }

  @Test(
    "Members that no honest org sends count as missing",
    arguments: [
      #","length":-1,"referenceTo":"User","calculatedFormula":7,"inlineHelpText":{},"picklistValues":{}"#,
      #","length":1e99,"referenceTo":[1,"a b"],"inlineHelpText":"","picklistValues":[null,{"value":""}]"#,
      #","length":null,"referenceTo":null,"calculatedFormula":"\u0000","picklistValues":["New"]"#,
      "",
    ])
  func hostile(members: String) throws {
    let field = try Self.field(members)
    #expect(field.length == nil && field.references == [] && field.choices == [])
    #expect(field.formula == nil && field.helpText == nil)
  }

  @Test("A text is as long as a database column can show, and has no NUL")
  func texts() throws {
    let field = try Self.field(
      #","inlineHelpText":"a\u0000b\#(String(repeating: "x", count: 100_000))""#)
    #expect(field.helpText?.hasPrefix("abx") == true && field.helpText?.count == 20_000)
    // One character, but megabytes of marks.
    let marks = String(repeating: "\u{301}", count: 1_000_000)
    let marked = try Self.field(#","label":"\u0000\u0007a\#(marks)","inlineHelpText":"a\#(marks)""#)
    #expect(marked.label.unicodeScalars.count == 253)
    #expect(marked.helpText?.unicodeScalars.count == 20_000)
  }
}
