import Bytes
import CEL
import JSON

/// What an expression comes to: JSON text of its value with its type, or the kind of its error.
func outcome(_ source: String, row: String = "{}") -> String {
  let members = (try? JSONValue(parsing: row))?.members ?? []
  let scope = ExpressionScope(columns: members.map { .init($0.name, CELType($0.value)) })
  let arena = ByteArena()
  do {
    let frame = Frame(try CompiledExpression(source, scope: scope))
    for (index, member) in members.enumerated() {
      frame.set(index, to: Value(member.value, in: arena))
    }
    return description(frame.evaluate(), frame)
  } catch {
    return kind(error)
  }
}

func description(_ value: Value, _ frame: Frame) -> String {
  if case .failure(let failure) = value { return kind(frame.error(failure)) }
  return "\(value.typeName?.rawValue ?? "?") \(value.json.text())"
}

private func kind(_ error: CELError) -> String {
  switch error.code {
  case .syntax: "syntax error"
  case .type: "type error"
  case .unsupported: "unsupported"
  case .absent: "absent"
  case .nullOrdering: "null ordering"
  default: "error: \(error.message)"
  }
}
