internal import JSON

/// The standard output of the Salesforce CLI.
enum CLIOutput {
  private static let maxCandidates = 8

  /// The JSON object of an output in which lines may come before and after it: notices of updates, warnings of
  /// Node.js and of plug-ins.
  static func object(in output: [UInt8]) -> JSONValue? {
    if let whole = Self.object(output) { return whole }
    let output = Self.withoutColours(output)
    if let whole = Self.object(output) { return whole }
    let (begin, end) = (UInt8(ascii: "{"), UInt8(ascii: "}"))
    let newline = UInt8(ascii: "\n")
    let begins = output.indices.lazy.filter { index in
      output[index] == begin && (index == 0 || output[index - 1] == newline)
    }.prefix(Self.maxCandidates)
    let ends = output.indices.reversed().lazy.filter { index in
      output[index] == end
        && (index + 1 == output.count || [newline, UInt8(ascii: "\r")].contains(output[index + 1]))
    }.prefix(Self.maxCandidates)
    for first in begins {
      for last in ends where last > first {
        // Not a line of a log, which may be an object too.
        if let object = Self.object(Array(output[first...last])), object["status"] != nil {
          return object
        }
      }
    }
    return nil
  }

  /// Without the colours that FORCE_COLOR adds: ESC, `[`, parameters, a letter. JSON has no ESC of its own.
  private static func withoutColours(_ output: [UInt8]) -> [UInt8] {
    var plain: [UInt8] = []
    var isSequence = false
    for (index, byte) in output.enumerated() {
      if byte == 0x1b {
        isSequence = true
      } else if isSequence {
        isSequence = !(0x40...0x7e).contains(byte) || output[index - 1] == 0x1b
      } else {
        plain.append(byte)
      }
    }
    return plain
  }

  private static func object(_ bytes: [UInt8]) -> JSONValue? {
    guard let json = try? JSONValue(parsing: bytes), json.members != nil else { return nil }
    return json
  }
}
