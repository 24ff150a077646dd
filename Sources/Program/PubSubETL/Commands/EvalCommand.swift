import ArgumentParser
import CEL
import Glibc
import JSON

/// `pubsub-etl eval EXPR`: the value of an expression, for trying out what stages will do.
struct EvalCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "eval",
    abstract: "Evaluates an expression in CEL, as stages do, and prints its type and value.",
    discussion: """
      Prints one line of JSON, such as {"type": "int", "value": 42}. Types: null, bool, int, uint, \
      double, string, bytes (value in base64), timestamp (ISO 8601), duration ("3.5s"), list, map, \
      type.
      Exit codes: 0 done; 64 command line, or the expression has a mistake: syntax, unknown name, \
      wrong type, or unsupported parts of CEL; 65 no value for this row, such as a division by zero; \
      74 standard output cannot be written.

      EXAMPLES:
        pubsub-etl eval '1 + 2'
        pubsub-etl eval "StageName == 'Closed Won' && Amount >= 1000" \\
          --row '{"StageName": "Closed Won", "Amount": 1200.5}'
        echo 'row.Name.startsWith("A")' | pubsub-etl eval - --row '{"Name": "Acme"}'
      """)

  // An expression may begin with a minus sign.
  @Argument(
    parsing: .allUnrecognized,
    help: ArgumentHelp(
      "The expression; - reads it from standard input.", valueName: "expression"))
  var expressions: [String]

  @Option(
    help: ArgumentHelp(
      "A JSON object; its members are the columns, and members of 'row'.", valueName: "json"))
  var row: String = "{}"

  @Option(
    help: ArgumentHelp(
      "Evaluate this many times, to measure how long it takes.", visibility: .hidden))
  var `repeat`: Int = 1

  func validate() throws {
    guard self.expressions.count == 1 else {
      throw ValidationError(
        "expected one expression, found \(self.expressions.count) arguments; put it in quotes")
    }
  }

  func run() throws {
    let source = try self.source()
    let row = try self.members()
    let scope = ExpressionScope(
      columns: row.map { ExpressionScope.Column($0.name, CELType($0.value)) })
    let arena = ByteArena()
    do {
      let program = try CompiledExpression(source, scope: scope)
      let frame = Frame(program)
      let values = row.map { Value($0.value, in: arena) }
      var value = Value.null
      for _ in 0..<max(1, self.repeat) {
        for column in program.columns { frame.set(column, to: values[column]) }
        value = frame.evaluate()
      }
      if case .failure(let failure) = value { throw frame.error(failure) }
      let result: JSONValue = [
        "type": .string(value.typeName.map(Self.name) ?? "null"), "value": value.json,
      ]
      let text = PrintableText(json: result, .spaced, hiding: SecretMask())
      try StandardStream.print(text)
    } catch let error as CELError {
      self.report(error.diagram(in: source))
      let isMistake = [.syntax, .type, .unsupported].contains(error.code)
      throw (isMistake ? ExitCode.usage : ExitCode.data).error
    }
  }

  private static func name(_ type: TypeName) -> String {
    switch type {
    case .null: "null"
    case .timestamp: "timestamp"
    case .duration: "duration"
    default: type.rawValue
    }
  }

  private func report(_ text: String) {
    StandardStream.tell(PrintableText(lines: text + "\n", hiding: SecretMask()))
  }

  private func members() throws -> [JSONMember] {
    do throws(JSONError) {
      if let members = try JSONValue(parsing: self.row).members { return members }
      self.report("--row: expected a JSON object")
    } catch {
      self.report("--row: \(error)")
    }
    throw ExitCode.usage.error
  }

  /// The expression; of standard input at most what the limit of expressions lets through.
  private func source() throws -> String {
    guard self.expressions[0] == "-" else { return self.expressions[0] }
    var bytes = [UInt8](repeating: 0, count: ExpressionLimits().byteCount + 1)
    var count = 0
    while count < bytes.count {
      let read = bytes.withUnsafeMutableBytes { buffer in
        Glibc.read(STDIN_FILENO, buffer.baseAddress.map { $0 + count }, buffer.count - count)
      }
      if read < 0, errno == EINTR { continue }
      guard read > 0 else { break }
      count += read
    }
    guard let text = String(validating: bytes.prefix(count), as: UTF8.self) else {
      self.report("standard input: the expression is invalid UTF-8")
      throw ExitCode.usage.error
    }
    return text
  }
}
