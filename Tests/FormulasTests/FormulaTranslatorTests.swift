import PostgresClient
import TestSupport
import Testing

@testable import Formulas

/// What the translated formulas give in PostgreSQL. The examples are those of the help pages, or follow
/// from their rules.
@Suite("Formulas in SQL") struct FormulaTranslatorTests {
  private func value(
    _ text: String, _ type: FormulaType, zero: Bool = true, over connection: PostgresConnection
  ) throws -> String {
    let translation = try FormulaTranslator.translate(
      Formula(text, type, treatsBlankAsZero: zero), fields: SampleFields(),
      collation: "und-x-icu")
    // A number of decimal places is not a matter of the value.
    let cast = type == .number || type == .percent ? "::double precision" : ""
    return try connection.rows("SELECT (\(translation.sql))\(cast)")[0][0]
  }

  private static let numbers: [(String, String)] = [
    ("Amount * Probability", "308.625"), ("1 + 2 * 3 - 4 / 2", "5"), ("(1 + 2) * 3", "9"),
    ("5 / 2", "2.5"), ("1 / 3 * 3", "1"), ("FLOOR(1 / 3 * 3)", "1"), ("Amount / Zero", "-"),
    ("Amount / NoNumber", "-"), ("Amount + NoNumber", "1234.5"), ("2 * (2 ^ 3)", "16"),
    ("ROUND(1.5, 0)", "2"), ("ROUND(-1.5, 0)", "-2"), ("ROUND(225.49823, 2)", "225.5"),
    ("CEILING(Debt)", "-3"), ("FLOOR(Debt)", "-2"), ("MCEILING(Debt)", "-2"),
    ("MFLOOR(Debt)", "-3"), ("CEILING(2.5)", "3"), ("MOD(123, 100)", "23"), ("MOD(3, 3)", "0"),
    ("ABS(Debt)", "2.5"), ("SQRT(9)", "3"), ("SQRT(Debt)", "-"), ("LN(1)", "0"),
    ("LOG(1000)", "3"), ("LN(Zero)", "-"), ("EXP(0)", "1"), ("MAX(1, Amount, 3)", "1234.5"),
    ("MIN(1, Debt)", "-2.5"), ("LEN(NoText)", "0"), ("LEN(Name)", "12"),
    ("FIND(\"Ü\", Name)", "9"), ("FIND(\"l\", \"hello\", 4)", "4"), ("FIND(\"x\", Name)", "0"),
    ("VALUE(\"1e2\")", "100"), ("VALUE(Name)", "-"), ("VALUE(NoText)", "-"),
    ("IF(Zero = 0, 1, Amount / Zero)", "1"), ("IF(Zero <> 0, 1, Amount / Zero)", "-"),
    ("IF(AND(Zero <> 0, Amount / Zero > 1), 1, 2)", "2"),
    ("IF(OR(Zero = 0, Amount / Zero > 1), 1, 2)", "1"),
    ("IF(OR(Zero <> 0, Amount / Zero > 1), 1, 2)", "-"),
    ("CASE(StageName, \"Open\", 1, \"Won\", 2, 3)", "2"), ("CASE(NoStage, \"\", 1, 2)", "1"),
    ("CASE(MOD(7, 3), 0, 10, 1, 20, 30)", "20"), ("YEAR(CloseDate)", "2024"),
    ("MONTH(CloseDate) * 100 + DAY(CloseDate)", "131"), ("WEEKDAY(CloseDate)", "4"),
    ("CloseDate - DATE(2024, 1, 1)", "30"), ("DATETIMEVALUE(CloseDate) - CreatedDate", "0.25"),
    ("HOUR(Opening) * 100 + MINUTE(Opening)", "830"), ("SECOND(Opening)", "15"),
    ("MILLISECOND(Opening)", "250"), ("BLANKVALUE(NoNumber, 5)", "0"), ("10 - 2 - 3", "5"),
    ("BLANKVALUE(VALUE(NoText), 5)", "5"), ("-Debt", "2.5"), ("- - 2", "2"),
    ("999999999 * 9999999999", "-"), ("YEAR(NoDate)", "-"), ("TRUNC(-2.55, 1)", "-2.5"),
  ]

  private static let texts: [(String, String)] = [
    ("Name & \"!\" & NoText", "O'Neil\\ Ünal!"), ("\"a\" + 'b'", "ab"), ("NoText", "-"),
    ("LEFT(Name, 3)", "O'N"), ("RIGHT(Name, 4)", "Ünal"), ("LEFT(Name, -1)", "-"),
    ("MID(Name, 3, 4)", "Neil"), ("MID(Name, 0, 1)", "O"), ("UPPER(\"straße\")", "STRASSE"),
    ("LOWER(Name)", "o'neil\\ ünal"), ("TRIM(\"  a b \")", "a b"),
    ("SUBSTITUTE(\"Coupon\", \"Coupon\", \"Debenture\")", "Debenture"),
    ("LPAD(\"7\", 3, \"0\")", "007"), ("RPAD(\"abc\", 2)", "ab"), ("LPAD(NoText, 3)", "-"),
    ("TEXT(Amount)", "1234.5"), ("TEXT(100)", "100"), ("TEXT(Probability)", "0.25"),
    ("TEXT(Amount / 1000)", "1.2345"), ("TEXT(CloseDate)", "2024-01-31"), ("TEXT(NoDate)", "-"),
    ("TEXT(CreatedDate)", "2024-01-30 18:00:00Z"), ("TEXT(StageName)", "Won"),
    ("TEXT(Opening)", "08:30:15.250"), ("IF(IsWon, \"yes\", NULL)", "yes"),
    ("BLANKVALUE(NoText, \"none\")", "none"), ("NULLVALUE(NoText, \"none\")", "-"),
    ("OwnerId", "005000000000001"), ("CASESAFEID(OwnerId)", "005000000000001AAA"),
    ("/* no */ \"say \\\"hi\\\"\"", "say \"hi\""),
    ("CASE(WEEKDAY(CloseDate), 4, 'Wed', '')", "Wed"),
  ]

  private static let conditions: [(String, String)] = [
    ("Amount > 1000", "t"), ("NoNumber < 1", "t"), ("NoDate < CloseDate", "f"),
    ("Amount = 1234.50", "t"), ("Amount != 1234.5", "f"), ("NoText = \"\"", "t"),
    ("ISBLANK(NoText)", "t"), ("ISNULL(NoText)", "f"), ("ISBLANK(NoNumber)", "f"),
    ("ISBLANK(NoDate)", "t"), ("ISBLANK(TEXT(NoStage))", "t"),
    ("ISPICKVAL(StageName, \"Won\")", "t"),
    ("ISPICKVAL(NoStage, \"\")", "t"), ("INCLUDES(Hobbies, \"Golf\")", "t"),
    ("INCLUDES(Hobbies, \"Go\")", "f"), ("CONTAINS(Name, \"Neil\")", "t"),
    ("CONTAINS(NoText, \"x\")", "f"), ("CONTAINS(Name, NoText)", "t"),
    ("BEGINS(Name, \"O'\")", "t"),
    ("NOT(IsWon)", "f"), ("!NoFlag", "t"), ("IsWon && NoFlag || true", "t"),
    ("IsWon = TRUE", "t"), ("NoFlag <> IsWon", "t"), ("ISNUMBER(\"-1.5\")", "t"),
    ("ISNUMBER(NoText)", "f"), ("ISNUMBER(\"1,5\")", "f"), ("OwnerId = \"005000000000001\"", "t"),
    ("Name = \"O'NEIL\\\\ ÜNAL\"", "f"), ("TODAY() > CloseDate", "t"), ("NOW() > CreatedDate", "t"),
    ("Amount / Zero > 1", "-"),
  ]

  private static let dates: [(String, String)] = [
    ("CloseDate + 1", "2024-02-01"), ("CloseDate + 1.9", "2024-02-01"),
    ("CloseDate - 31", "2023-12-31"), ("DATE(2024, 2, 29)", "2024-02-29"),
    ("DATE(2023, 2, 29)", "-"), ("DATE(2023, 13, 1)", "-"),
    ("DATEVALUE(\"2024-02-05\")", "2024-02-05"),
    ("DATEVALUE(\"5.2.2024\")", "-"), ("DATEVALUE(CreatedDate)", "2024-01-30"),
    ("ADDMONTHS(CloseDate, 1)", "2024-02-29"), ("ADDMONTHS(DATE(2024, 2, 29), 1)", "2024-03-31"),
    ("ADDMONTHS(DATE(2024, 1, 15), -2)", "2023-11-15"), ("CloseDate + 99999999", "-"),
    ("CloseDate - 99999999 - 99999999", "-"), ("ADDMONTHS(CloseDate, 999999999999)", "-"),
    ("DATE(YEAR(CloseDate), MONTH(CloseDate), 1)", "2024-01-01"),
  ]

  @Test("Values") func values() async throws {
    let connection = try await TestDatabase().connect()
    for (text, expected) in Self.numbers {
      #expect(try self.value(text, .number, over: connection) == expected, "\(text)")
    }
    for (text, expected) in Self.texts {
      #expect(try self.value(text, .text, over: connection) == expected, "\(text)")
    }
    for (text, expected) in Self.conditions {
      #expect(try self.value(text, .boolean, over: connection) == expected, "\(text)")
    }
    for (text, expected) in Self.dates {
      #expect(try self.value(text, .date, over: connection) == expected, "\(text)")
    }
    try connection.execute("SET TimeZone = 'Asia/Tokyo'")
    #expect(
      try self.value("CreatedDate + 0.5", .dateTime, over: connection)
        == "2024-01-31 15:00:00+09")
    #expect(
      try self.value("DATETIMEVALUE(\"2024-01-30 18:00:00\")", .dateTime, over: connection)
        == "2024-01-31 03:00:00+09")
    #expect(
      try self.value("TIMEVALUE(\"17:30:45.125\")", .time, over: connection) == "17:30:45.125")
    #expect(try self.value("Probability", .percent, over: connection) == "25")
  }

  @Test("Empty numbers stay empty if the formula says so") func blank() async throws {
    let connection = try await TestDatabase().connect()
    for (text, expected) in [
      ("Amount + NoNumber", "-"), ("MAX(Amount, NoNumber)", "-"), ("BLANKVALUE(NoNumber, 5)", "5"),
      ("IF(NoNumber > 1, 1, 2)", "2"), ("IF(ISBLANK(NoNumber), 1, 2)", "1"),
    ] {
      #expect(
        try self.value(text, .number, zero: false, over: connection) == expected, "\(text)")
    }
    #expect(try self.value("LEFT(Name, NoNumber)", .text, zero: false, over: connection) == "-")
  }

  @Test("A formula may refer to others, but not to itself") func others() async throws {
    let connection = try await TestDatabase().connect()
    var fields = SampleFields()
    let half = Formula("Amount / Zero", .percent, treatsBlankAsZero: true)
    fields.add("Share__c", Formula("Probability / 5", .percent, treatsBlankAsZero: true))
    fields.add("Error__c", half)
    fields.add("Loop__c", Formula("Loop__c + 1", .number, treatsBlankAsZero: true))
    func value(_ text: String) throws -> String {
      let sql = try FormulaTranslator.translate(
        Formula(text, .number, treatsBlankAsZero: true), fields: fields, collation: nil
      ).sql
      return try connection.rows("SELECT (\(sql))::double precision")[0][0]
    }
    #expect(try value("share__c * 100") == "5")
    #expect(try value("BLANKVALUE(Error__c, 5)") == "-")
    #expect(try value("IF(IsWon, 1, Error__c)") == "1")
    #expect(throws: FormulaRefusal.self) { try value("Loop__c") }
  }

  @Test("What is not certain is refused, with the reason")
  func refusals() {
    for (text, reason) in [
      ("REGEX(Name, \"a\")", "function REGEX is not translated"),
      ("2 * 2 ^ 3", "the order of ^ and the operator beside it is not certain"),
      ("$User.Id", "$User.Id is a global variable, which is not translated"),
      ("Missing__c", "field Missing__c is not there"),
      ("IF(ISPICKVAL(Translated, \"Won\"), 1, 2)", FormulaTranslator.otherLabels),
      (
        "IF(NOT(CONTAINS(Name, \"x\")), 1, 2)",
        "it has NOT of a condition on a value that can be empty"
      ),
      ("IF(Name > \"a\", 1, 2)", "> of a text and a text is not translated"),
      ("VALUE(TEXT(1 / 3))", "TEXT of a number with endless digits is not translated; ROUND it"),
      ("1 +", "it ends too early"), ("(1", "it ends too early"),
      ("1)", "')' is in an unexpected place"),
      ("1 2", "an operator is missing"), ("\"a", "a text has no end"),
      ("/* a", "a comment has no end"),
      ("1 ; 2", "it has a character that is not part of the translated language"),
      ("Name", "its result is a text, and the field is a number"), ("", "it ends too early"),
      (String(repeating: "(", count: 3000), "it is nested more than 60 levels deep"),
      (String(repeating: "-", count: 3000) + "1", "it is nested more than 60 levels deep"),
      (String(repeating: "1+", count: 1500) + "1", "it has more than 300 operators"),
      (String(repeating: " ", count: 5000), "it is longer than 4000 characters"),
    ] {
      #expect(throws: FormulaRefusal(reason), "\(text.prefix(60))") {
        try FormulaTranslator.translate(
          Formula(text, .number, treatsBlankAsZero: true), fields: SampleFields(), collation: nil)
      }
    }
  }
}
