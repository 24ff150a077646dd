internal import JSON
internal import SimulatedOrg

/// JSON that users write for the simulator: all mistakes are reported, each with its place.
enum JSONDocument {
  static func parse(_ text: String, name: String) throws -> JSONValue {
    do {
      return try JSONValue(parsing: text)
    } catch {
      throw SimulatorError(.configuration, "\(name): \(error)")
    }
  }

  static func check(_ mistakes: JSONMistakes, name: String) throws {
    guard !mistakes.isEmpty else { return }
    let lines = mistakes.inTextOrder.map { "\(name):\($0.position.line): \($0)" }
    throw SimulatorError(.configuration, lines.joined(separator: "\n"))
  }
}
