import Testing

@Suite("Operators")
struct OperatorTests {
  @Test(
    "Arithmetic is exact, checked and of one type",
    arguments: [
      ("1 + 2 * 3 - 4 / 2", "int 5"), ("7 % 3", "int 1"), ("-7 % 3", "int -1"),
      ("-7 / 2", "int -3"), ("7u % 4u", "uint 3"), ("2u - 3u", "error: the result is out of range"),
      ("9223372036854775807 + 1", "error: the result is out of range"),
      ("-9223372036854775808", "int -9223372036854775808"),
      ("-(-9223372036854775808)", "error: the result is out of range"),
      ("-9223372036854775808 / -1", "error: the result is out of range"),
      ("-9223372036854775808 % -1", "error: the result is out of range"),
      ("5000000000 * 5000000000", "error: the result is out of range"),
      ("1 / 0", "error: division by zero"), ("1u % 0u", "error: division by zero"),
      ("1.0 / 0.0", "double \"Infinity\""), ("-1.0 / 0.0", "double \"-Infinity\""),
      ("0.0 / 0.0", "double \"NaN\""), ("1.5 * 2.0 - 0.5", "double 2.5"),
      ("1 + 1.0", "type error"), ("1 + 1u", "type error"), ("1.5 % 1.0", "type error"),
      ("-1u", "type error"), ("'a' + 'b'", "string \"ab\""), ("b'a' + b'b'", "bytes \"YWI=\""),
      ("[1] + ['a'] + []", "list [1,\"a\"]"), ("'a' + 1", "type error"),
      ("dyn(1) + 1.0", misfit("'+': ")),
    ])
  func arithmetic(source: String, expected: String) {
    #expect(outcome(source) == expected)
  }

  @Test(
    "Numbers of all types are compared by their mathematical value",
    arguments: [
      ("1 == 1.0", true), ("1u == 1", true), ("1 < 1.5", true), ("-1 < 0u", true),
      ("9007199254740993 == 9007199254740992.0", false),
      ("9007199254740993 > 9007199254740992.0", true),
      ("18446744073709551615u < 18446744073709551616.0", true),
      ("9223372036854775807 < 9223372036854775808.0", true),
      ("-9223372036854775808 == -9223372036854775808.0", true),
      ("1e300 > 9223372036854775807", true), ("-1e300 < -9223372036854775807", true),
      ("0.0 == -0.0", true), ("double('NaN') == double('NaN')", false),
      ("double('NaN') != 1", true), ("double('NaN') < 1", false), ("1 >= double('NaN')", false),
      ("[1, 2u, 3.0] == [1.0, 2, 3u]", true), ("{1: 'a'} == {1u: 'a'}", true),
      ("1 in [1.0]", true), ("2u in {2: 'x'}", true), ("dyn(1.0) in {1: 2}", true),
    ])
  func mixedNumbers(source: String, expected: Bool) {
    #expect(outcome(source) == "bool \(expected)")
  }

  @Test(
    "Equality is defined for all values, ordering for some",
    arguments: [
      ("dyn(1) == 'a'", "bool false"), ("dyn(1) != 'a'", "bool true"),
      ("1 == 'a'", "type error"), ("'a' == null", "bool false"), ("null == null", "bool true"),
      ("[1, [2]] == [1, [2]]", "bool true"), ("[1] == [1, 2]", "bool false"),
      ("{'a': 1, 'b': 2} == {'b': 2, 'a': 1}", "bool true"), ("{'a': 1} == {'b': 1}", "bool false"),
      ("'a' < 'b'", "bool true"), ("'ab' < 'b'", "bool true"), ("'' < 'a'", "bool true"),
      ("'\u{FFFF}' < '😀'", "bool true"), ("b'\\xff' > b'a'", "bool true"),
      ("false < true", "bool true"), ("[1] < [2]", "type error"),
      ("dyn([1]) < dyn([2])", misfit("'<': ")),
      ("int == type(1)", "bool true"), ("type(type(1)) == type", "bool true"),
    ])
  func equalityAndOrder(source: String, expected: String) {
    #expect(outcome(source) == expected)
  }

  @Test(
    "&& and || ignore a failure of one side if the other decides",
    arguments: [
      ("false && 1 / 0 > 0", "bool false"), ("1 / 0 > 0 && false", "bool false"),
      ("true || 1 / 0 > 0", "bool true"), ("1 / 0 > 0 || true", "bool true"),
      ("true && 1 / 0 > 0", "error: division by zero"),
      ("1 / 0 > 0 || false", "error: division by zero"),
      ("dyn('a') && false", "bool false"), ("dyn('a') || true", "bool true"),
      ("dyn('a') && true", misfit("'&&': ")),
      ("true ? 1 : 1 / 0", "int 1"), ("false ? 1 / 0 : 2", "int 2"),
      ("1 / 0 > 0 ? 1 : 2", "error: division by zero"), ("true ? 'a' : 1", "type error"),
      ("true ? 'a' : null", "string \"a\""), ("!true", "bool false"), ("!!true", "bool true"),
    ])
  func logic(source: String, expected: String) {
    #expect(outcome(source) == expected)
  }

  @Test(
    "Null and absent columns follow the rules of operators",
    arguments: [
      ("n == null", "bool true"), ("n != 1", "bool true"), ("n < 1", "null ordering"),
      ("1 >= n", "null ordering"), ("n < 1 || true", "bool true"), ("n < 1 && false", "bool false"),
      ("!(n < 1)", "null ordering"),
      ("n + 1", misfit("'+': ")), ("-n", misfit("'-': ")), ("size(n)", misfit("'size': ")),
    ])
  func null(source: String, expected: String) {
    #expect(outcome(source, row: #"{"n": null}"#) == expected)
  }

  @Test(
    "Lists and maps are indexed, compared and searched",
    arguments: [
      ("[7, 8, 9][1]", "int 8"), ("[7][1]", "error: the index is outside of the list"),
      ("[7][-1]", "error: the index is outside of the list"), ("[7][dyn(0.0)]", "int 7"),
      ("[7][dyn(0.1)]", misfit("")),
      ("[7][dyn(0u)]", "int 7"), ("{'a': 1}.a", "int 1"), ("{'a': 1}['a']", "int 1"),
      ("{'a': 1}.b", "error: no such key in the map"), ("{1: 2}[1u]", "int 2"),
      ("{'a': 1, 'a': 2}", "error: the map has one key twice"),
      ("{1: 1, 1u: 2}", "error: the map has one key twice"), ("{1.0: 1}", "type error"),
      ("{dyn(1.0): 1}", "error: a key of a map is bool, int, uint or string"),
      ("{0: 1, 1: 2, 2: 3, 3: 4, 4: 5, 5: 6, 6: 7, 7: 8, 8: 9, 9: 10}[9u]", "int 10"),
      (
        "{0: 1, 1: 2, 2: 3, 3: 4, 4: 5, 5: 6, 6: 7, 7: 8, 8: 9, 9: 10}[10]",
        "error: no such key in the map"
      ),
      ("'a' in {'a': null}", "bool true"), ("1 in []", "bool false"), ("'a' in [1]", "type error"),
      ("has({'a': null}.a)", "bool true"), ("has({'a': 1}.b)", "bool false"),
      ("has({'a': {'b': 1}}.a.b)", "bool true"), ("has({}.a.b)", "error: no such key in the map"),
      ("size([1, 2])", "int 2"), ("{'a': 1}.size()", "int 1"), ("[1,]", "list [1]"),
      ("{'a': 1,}", "map {\"a\":1}"), ("[[1, 2], [3]][0][1]", "int 2"),
      ("{true: 1, 2: 3u}", "map {\"true\":1,\"2\":3}"),
    ])
  func collections(source: String, expected: String) {
    #expect(outcome(source) == expected)
  }

  @Test(
    "Macros iterate over lists and over the keys of maps",
    arguments: [
      ("[1, 2].all(x, x > 0)", "bool true"), ("[1, 0].all(x, 1 / x > 5)", "bool false"),
      ("[0, 1].all(x, 1 / x > 0)", "error: division by zero"), ("[].all(x, x > 0)", "bool true"),
      ("[0, 1].exists(x, 1 / x > 0)", "bool true"), ("[].exists(x, true)", "bool false"),
      ("[1, 'a'].exists(x, x == 'a')", "bool true"),
      ("[1, 2, 3].exists_one(x, x > 2)", "bool true"),
      ("[1, 2, 0].exists_one(x, 1 / x > 0)", "error: division by zero"),
      ("[1, 2, 3].map(x, x * x)", "list [1,4,9]"),
      ("[1, 2, 3].map(x, x > 1, x * x)", "list [4,9]"),
      ("[1, 2, 3].filter(x, x % 2 == 1)", "list [1,3]"), ("{'a': 1}.map(k, k)", "list [\"a\"]"),
      ("{1: 2, 3: 4}.filter(k, k > 1)", "list [3]"),
      ("[[1, 2], [3]].map(l, l.map(x, x + l.size()))", "list [[3,4],[4]]"),
      ("[1].exists(x, [2].exists(x, x == 2))", "bool true"), ("1.all(x, true)", "type error"),
      ("[1].all(x, x)", "type error"), ("[1].all(1, true)", "syntax error"),
      ("[1].all(x)", "syntax error"), ("[1].exists(i, v, true)", "unsupported"),
      ("has(1)", "syntax error"),
    ])
  func macros(source: String, expected: String) {
    #expect(outcome(source) == expected)
  }
}

/// The failure of an operation whose operands have types that it does not take.
private func misfit(_ name: String) -> String {
  "error: \(name)no such operation for values of these types; null has none but == and !=, so test "
    + "for it first: Column == null ? … : …"
}
