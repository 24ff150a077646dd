import Foundation
import Testing

@Suite("pubsub-etl eval", .enabled(if: ProofScript.programs != nil))
struct EvalTests {
  private struct Result: Equatable {
    var status: Int32
    var output: String
    var errors: String
  }

  private func eval(_ arguments: [String], input: [UInt8] = []) throws -> Result {
    let process = Process()
    let programs = try #require(ProofScript.programs)
    process.executableURL = URL(fileURLWithPath: "\(programs)/pubsub-etl")
    process.arguments = ["eval"] + arguments
    let (stdin, stdout, stderr) = (Pipe(), Pipe(), Pipe())
    (process.standardInput, process.standardOutput, process.standardError) = (stdin, stdout, stderr)
    try process.run()
    // What is written here and below fits the pipes.
    try stdin.fileHandleForWriting.write(contentsOf: Data(input))
    try stdin.fileHandleForWriting.close()
    let output = stdout.fileHandleForReading.readDataToEndOfFile()
    let errors = stderr.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    return Result(
      status: process.terminationStatus, output: String(decoding: output, as: UTF8.self),
      errors: String(decoding: errors, as: UTF8.self))
  }

  @Test(
    "eval prints the type and the value as one line of JSON",
    arguments: [
      ("6 * 7", #"{"type": "int", "value": 42}"#), ("null", #"{"type": "null", "value": null}"#),
      ("-1", #"{"type": "int", "value": -1}"#), ("--1", #"{"type": "int", "value": 1}"#),
      ("-(4.5)", #"{"type": "double", "value": -4.5}"#),
      ("18446744073709551615u", #"{"type": "uint", "value": 18446744073709551615}"#),
      ("2.0", #"{"type": "double", "value": 2.0}"#), ("true", #"{"type": "bool", "value": true}"#),
      ("0.0 / 0.0", #"{"type": "double", "value": "NaN"}"#),
      ("-1.0 / 0.0", #"{"type": "double", "value": "-Infinity"}"#),
      (#"'a\n"é'"#, #"{"type": "string", "value": "a\n\"é"}"#),
      ("b'abc'", #"{"type": "bytes", "value": "YWJj"}"#),
      ("duration('3500ms')", #"{"type": "duration", "value": "3.5s"}"#),
      (
        "timestamp('2026-02-17T04:03:15Z')",
        #"{"type": "timestamp", "value": "2026-02-17T04:03:15Z"}"#
      ),
      ("[1, 'a', [null]]", #"{"type": "list", "value": [1, "a", [null]]}"#),
      ("{'a': 1, 2: {}}", #"{"type": "map", "value": {"a": 1, "2": {}}}"#),
      ("type(1)", #"{"type": "type", "value": "int"}"#),
    ])
  func values(expression: String, line: String) throws {
    #expect(try self.eval([expression]) == Result(status: 0, output: line + "\n", errors: ""))
  }

  @Test("eval takes columns from --row and the expression from standard input")
  func rowAndInput() throws {
    let row = #"{"Amount": 1200.5, "Count": 3, "Name": null, "Address": {"City": "Rome"}}"#
    let expression = """
      // what a pipeline file has on several lines
      Amount > Count &&
        Name == null && row.Address.City == 'Rome'

      """
    let result = try self.eval(["-", "--row", row], input: Array(expression.utf8))
    #expect(
      result == Result(status: 0, output: #"{"type": "bool", "value": true}"# + "\n", errors: ""))
  }

  @Test(
    "The exit code distinguishes a mistake in the expression from a failed evaluation",
    arguments: [
      (
        "1 +", 64,
        "line 1, column 4: expected an expression, found the end of the expression\n  1 +\n     ^\n"
      ),
      ("1 + 'a'", 64, "line 1, column 3: '+' does not take (int, string)"),
      ("Amuont > 1", 64, "line 1, column 1: 'Amuont' is not a column; did you mean 'Amount'?"),
      ("Name{}", 64, "unsupported"),
      ("1 / 0", 65, "line 1, column 3: division by zero\n  1 / 0\n    ^\n"),
      ("{'a': 1}.b", 65, "no such key in the map"), ("Name < 1", 65, "null has no order"),
    ])
  func failures(expression: String, status: Int32, message: String) throws {
    let result = try self.eval([expression, "--row", #"{"Amount": 1, "Name": null}"#])
    #expect(result.status == status)
    #expect(result.output == "")
    #expect(result.errors.contains(message), "\(result.errors)")
  }

  @Test(
    "An invalid command line is refused",
    arguments: [[], ["1", "2"], ["1", "--row", "[]"], ["1", "--row", "{"], ["1", "--row"]])
  func usage(arguments: [String]) throws {
    #expect(try self.eval(arguments).status == 64)
  }

  @Test("Standard input that is empty or invalid UTF-8 is refused")
  func badInput() throws {
    #expect(try self.eval(["-"]).status == 64)
    let invalid = try self.eval(["-"], input: [0x27, 0xFF, 0x27])
    #expect(invalid.status == 64)
    #expect(invalid.errors == "standard input: the expression is invalid UTF-8\n")
  }
}
