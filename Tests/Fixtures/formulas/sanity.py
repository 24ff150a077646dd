#!/usr/bin/env python3
"""Sanity tests of the evaluator: examples of public documentation and values worked out by hand.

Each row: formula, result type, scale, blank handling, fields of the record, expected result ("ERR" = #Error!), source.
"""
import corpus_records as c
import reference as ref

H = "help.salesforce.com platform.customize_functions_"
TESTS = [
    # documented examples
    ("ROUND(1.5, 0)", "Number", 0, "zero", {}, "2", H + "round"),
    ("ROUND(1.2345, 0)", "Number", 0, "zero", {}, "1", H + "round"),
    ("ROUND(-1.5, 0)", "Number", 0, "zero", {}, "-2", H + "round"),
    ("ROUND(225.49823, 2)", "Number", 2, "zero", {}, "225.5", H + "round"),
    ("CEILING(2.5)", "Number", 0, "zero", {}, "3", H + "ceiling"),
    ("CEILING(-2.5)", "Number", 0, "zero", {}, "-3", H + "ceiling"),
    ("FLOOR(2.5)", "Number", 0, "zero", {}, "2", "help article 000386432"),
    ("FLOOR(-2.5)", "Number", 0, "zero", {}, "-2", "help article 000386432"),
    ("MCEILING(-2.5)", "Number", 0, "zero", {}, "-2", H + "mceiling"),
    ("MFLOOR(-2.5)", "Number", 0, "zero", {}, "-3", H + "mfloor"),
    ("12.345", "Number", 2, "zero", {}, "12.35", "platform.tips_for_using_number_formula_fields"),
    ("-12.345", "Number", 2, "zero", {}, "-12.35", "platform.tips_for_using_number_formula_fields"),
    ("23.5", "Currency", 0, "zero", {}, "24", "platform.choosing_a_formula_data_type"),
    ("22.5", "Currency", 0, "zero", {}, "23", "platform.choosing_a_formula_data_type"),
    ("-22.5", "Currency", 0, "zero", {}, "-23", "platform.choosing_a_formula_data_type"),
    ("-23.5", "Currency", 0, "zero", {}, "-24", "platform.choosing_a_formula_data_type"),
    ("TEXT(Rate__c)", "Text", 0, "zero", {"Rate__c": "30"}, "0.3", "Trailhead text_formulas"),
    ("TEXT(Close_Date__c)", "Text", 0, "zero", {"Close_Date__c": "2015-03-17"}, "2015-03-17", "Trailhead text_formulas"),
    ("TEXT(Opened__c)", "Text", 0, "zero", {"Opened__c": "2015-03-17T17:00:00Z"}, "2015-03-17 17:00:00Z", "Trailhead text_formulas"),
    ("TEXT(Amount__c)", "Text", 0, "zero", {"Amount__c": "200000.00"}, "200000", H + "text"),
    ("Probability__c = 0.9", "Checkbox", 0, "zero", {"Probability__c": "90"}, True, "platform.tips_for_using_number_formula_fields"),
    ("INCLUDES(Interests__c, \"Golf\")", "Checkbox", 0, "zero", {"Interests__c": "Golf Carts;Tennis"}, False, H + "includes"),
    ("INCLUDES(Interests__c, \"Golf\")", "Checkbox", 0, "zero", {"Interests__c": "Art;Golf"}, True, H + "includes"),
    ("CASE(Text_A__c, \"Partner\", \"P\", \"Customer\", \"C\", TEXT(1/0))", "Text", 0, "zero", {"Text_A__c": "Partner"}, "ERR", H + "case: an error in any expression"),
    ("TODAY() + 0.7", "Date", 0, "zero", {}, "2024-02-29", "tips for date formulas"),
    ("TODAY() + 1.7", "Date", 0, "zero", {}, "2024-03-01", "tips for date formulas"),
    ("TODAY() + (-1.8)", "Date", 0, "zero", {}, "2024-02-28", "tips for date formulas"),
    ("TODAY() + 0.5 + 0.5", "Date", 0, "zero", {}, "2024-02-29", "tips for date formulas"),
    ("TODAY() + (0.5 + 0.5)", "Date", 0, "zero", {}, "2024-03-01", "tips for date formulas"),
    ("ISBLANK(Text_A__c)", "Checkbox", 0, "zero", {"Text_A__c": " "}, False, H + "isblank: a space is not blank"),
    ("ISNULL(Text_A__c)", "Checkbox", 0, "zero", {"Text_A__c": None}, False, H + "isnull: text is never null"),
    ("ISBLANK(Num_A__c)", "Checkbox", 0, "zero", {"Num_A__c": None}, False, H + "isblank"),
    ("ISBLANK(Num_A__c)", "Checkbox", 0, "blank", {"Num_A__c": None}, True, H + "isblank"),
    ("10 + Num_A__c", "Number", 0, "zero", {"Num_A__c": None}, "10", "steedos-platform issue 914, measured in an org"),
    ("10 + Num_A__c", "Number", 0, "blank", {"Num_A__c": None}, None, "steedos-platform issue 914, measured in an org"),
    ("Text_A__c + \"-abc\"", "Text", 0, "blank", {"Text_A__c": None}, "-abc", "steedos-platform issue 914, measured in an org"),
    ("TEXT(Num_A__c) + \"-abc\"", "Text", 0, "zero", {"Num_A__c": None}, "0-abc", "steedos-platform issue 914, measured in an org"),
    ("TEXT(Num_A__c) + \"-abc\"", "Text", 0, "blank", {"Num_A__c": None}, "-abc", "steedos-platform issue 914, measured in an org"),
    ("DAY(Close_Date__c) + 4", "Number", 0, "zero", {"Close_Date__c": None}, None, "steedos-platform issue 914, measured in an org"),
    ("Shut_Time__c - Open_Time__c", "Number", 0, "zero", {"Open_Time__c": "20:00:00.000", "Shut_Time__c": "21:00:00.000"}, "3600000", "Trailhead date formulas"),
    ("Open_Time__c + 25 * 3600000", "Time", 0, "zero", {"Open_Time__c": "09:00:00.000"}, "10:00:00.000", "Trailhead: 25 hours are 1 hour"),
    ("DATE(2023, 2, 30)", "Date", 0, "zero", {}, "ERR", H + "date"),
    ("1 + VALUE(Text_A__c)", "Number", 0, "zero", {"Text_A__c": "123"}, "124", H + "value"),
    ("1 + VALUE(Text_A__c)", "Number", 0, "zero", {"Text_A__c": None}, None, H + "value"),
    ("1 + VALUE(Text_A__c)", "Number", 0, "zero", {"Text_A__c": "$123"}, "ERR", H + "value: not calculated, blank"),
    ("ISNUMBER(\"2E2\")", "Checkbox", 0, "zero", {}, True, H + "isnumber"),
    ("ISNUMBER(\"123,12\")", "Checkbox", 0, "zero", {}, False, H + "isnumber"),
    ("ISNUMBER(\"1 000\")", "Checkbox", 0, "zero", {}, False, H + "isnumber"),
    ("ISNUMBER(\"\")", "Checkbox", 0, "zero", {}, False, H + "isnumber"),
    ("CONTAINS(Text_A__c, Text_B__c)", "Checkbox", 0, "zero", {"Text_B__c": None}, True, "help article 000385300: blank is contained"),
    ("IF(NOT(CONTAINS(Text_A__c, \"x\")), 1, 0)", "Number", 0, "zero", {"Text_A__c": None}, "0", "help article 000385300: NOT(CONTAINS) and blank"),
    ("CONTAINS(\"0123456789\", Text_A__c)", "Checkbox", 0, "zero", {"Text_A__c": "789"}, True, "help article 000385300"),
    ("OR(FALSE, Num_A__c <> 1)", "Checkbox", 0, "blank", {"Num_A__c": None}, False, H + "isnull: <> does not see a blank"),
    ("OR(ISNULL(Num_A__c), Num_A__c <> 1)", "Checkbox", 0, "blank", {"Num_A__c": None}, True, H + "isnull"),
    # worked out by hand
    ("MOD(-7.25, 3)", "Number", 2, "zero", {}, "-1.25", "remainder: -7.25 + 2*3"),
    ("MOD(7, -3)", "Number", 0, "zero", {}, "1", "remainder: 7 - 2*3"),
    ("WEEKDAY(DATE(2024, 2, 29))", "Number", 0, "zero", {}, "5", "a Thursday; Sunday is 1"),
    ("MOD(DATE(2024, 2, 29) - DATE(1900, 1, 7), 7)", "Number", 0, "zero", {}, "4", "Thursday, Sunday is 0"),
    ("MOD(DATE(1899, 12, 31) - DATE(1900, 1, 7), 7)", "Number", 0, "zero", {}, "0", "-7 days, a Sunday"),
    ("MOD(DATE(1899, 12, 30) - DATE(1900, 1, 7), 7)", "Number", 0, "zero", {}, "-1", "-8 days: a negative remainder"),
    ("ADDMONTHS(DATE(2024, 1, 31), 1)", "Date", 0, "zero", {}, "2024-02-29", "shorter month"),
    ("ADDMONTHS(DATE(2024, 1, 30), 1)", "Date", 0, "zero", {}, "2024-02-29", "shorter month"),
    ("ADDMONTHS(DATE(2024, 1, 15), -2)", "Date", 0, "zero", {}, "2023-11-15", "backwards over a year"),
    ("1 / 0", "Number", 0, "zero", {}, "ERR", "division by zero"),
    ("IF(TRUE, 1, 1 / 0)", "Number", 0, "zero", {}, "1", "IF evaluates one branch"),
    ("FLOOR(1 / 3 * 3)", "Number", 0, "zero", {}, "1", "guard digits"),
    ("FLOOR((DATETIMEVALUE(\"2024-01-01 02:00:00\") - DATETIMEVALUE(\"2024-01-01 00:00:00\")) * 24)", "Number", 0, "zero", {}, "2", "guard digits"),
    ("FIND(\"c\", \"abcabc\", 4)", "Number", 0, "zero", {}, "6", "position counts from the start"),
    ("FIND(\"z\", \"abc\")", "Number", 0, "zero", {}, "0", "missing"),
    ("MID(\"abcdef\", 3, 99)", "Text", 0, "zero", {}, "cdef", "too long"),
    ("MID(\"abcdef\", 9, 2)", "Text", 0, "zero", {}, None, "past the end"),
    ("RIGHT(\"abc\", 9)", "Text", 0, "zero", {}, "abc", "too long"),
    ("LPAD(\"7\", 3, \"0\")", "Text", 0, "zero", {}, "007", "padding"),
    ("LPAD(\"abcdef\", 3, \"0\")", "Text", 0, "zero", {}, "abc", "cut"),
    ("RPAD(\"a\", 4, \"xy\")", "Text", 0, "zero", {}, "axyx", "padding"),
    ("VALUE(\"1,000\")", "Number", 0, "zero", {}, "ERR", "only digits, point and minus"),
    ("VALUE(\"-0.50\")", "Number", 2, "zero", {}, "-0.5", "plain number"),
    ("0.1 + 0.2 = 0.3", "Checkbox", 0, "zero", {}, True, "decimal arithmetic"),
    ("-Num_A__c + 1", "Number", 0, "zero", {"Num_A__c": "3"}, "-2", "unary minus"),
    ("10 - 4 - 3", "Number", 0, "zero", {}, "3", "left to right"),
    ("TRUE || FALSE && FALSE", "Checkbox", 0, "zero", {}, True, "&& before ||"),
    ("Rate__c", "Percent", 2, "zero", {"Rate__c": "5.25"}, "5.25", "percent in, percent out"),
    ("Rate__c", "Number", 4, "zero", {"Rate__c": "5.25"}, "0.0525", "percent as a number"),
    ("0.5", "Percent", 0, "zero", {}, "50", "number as a percent"),
    ("CASESAFEID(\"001A0000006Vm9r\")", "Text", 0, "zero", {}, "001A0000006Vm9rIAC", "published 15/18 pair"),
    ("SUBSTITUTE(\"aaa\", \"aa\", \"b\")", "Text", 0, "zero", {}, "ba", "left to right, no overlap"),
    ("DATETIMEVALUE(\"2024-02-29 23:59:59\") + 1 / 86400", "DateTime", 0, "zero", {}, "2024-03-01T00:00:00Z", "one second"),
    ("\"a\" & NULL & \"b\"", "Text", 0, "zero", {}, "ab", "blank text"),
    ("IF(Num_A__c > 1, \"a\", \"b\")", "Text", 0, "blank", {"Num_A__c": None}, "b", "unknown condition"),
]


def main():
    bad = 0
    for text, typ, scale, blank, over, want, source in TESTS:
        f = {"name": "F__c", "formula": text, "type": typ, "scale": scale, "blank": blank}
        m = ref.Model({"fields": c.FIELDS, "formulas": [f], "now": "2024-02-29T23:30:15Z"})
        try:
            m.check(f)
            res, _ = ref.run(m, f, dict(c.BASE, **over))
            got = "ERR" if res.get("error") else res["value"]
        except ref.Refuse as x:
            got = "REFUSED " + str(x)
        if got != want:
            bad += 1
            print("FAIL", text, "->", repr(got), "expected", repr(want), "(%s)" % source)
    print("%d sanity tests, %d failures" % (len(TESTS), bad))
    return bad


if __name__ == "__main__":
    raise SystemExit(1 if main() else 0)
