import JSON

/// A value of the pipeline file replaced on the command line: `--set sinks.0.directory=/data`.
struct ConfigurationOverride: Sendable, Equatable {
  struct ParseError: Error, CustomStringConvertible {
    var description: String
  }

  /// Names of members, numbers of elements.
  var path: [String]
  /// JSON if the text is JSON, else the text as a string. Interpolated afterwards.
  var value: JSONValue

  /// - Parameter argument: `path=value`, the path with dots.
  init(_ argument: String) throws(ParseError) {
    guard let equals = argument.firstIndex(of: "=") else {
      // The text may be a secret: it is not repeated.
      throw ParseError(
        description: "--set expects path=value, for example source.topic=/event/X__e")
    }
    let path = argument[..<equals].split(separator: ".", omittingEmptySubsequences: false)
    guard path.allSatisfy({ !$0.isEmpty }) else {
      throw ParseError(
        description: "the path '\(argument[..<equals])' has an empty part; write source.topic=VALUE"
      )
    }
    self.path = path.map(String.init)
    let text = String(argument[argument.index(after: equals)...])
    // Parsed positions would be places inside the argument.
    self.value = ((try? JSONValue(parsing: text)) ?? .string(text)).withoutPositions
    if let key = self.path.first(where: Secret.keys.contains) ?? self.value.firstSecretKey
      ?? self.urlWithUser
    {
      throw ParseError(
        description:
          "\(key) cannot be given with --set, because other users can read command lines; put "
          + "it into an environment variable or a file and write ${NAME} or ${file:/path} in "
          + "the pipeline file"
      )
    }
  }

  /// The key of an address in which a user or password stands.
  private var urlWithUser: String? {
    guard let key = self.path.last, Secret.urlKeys.contains(key),
      self.value.string?.contains("@") == true
    else { return nil }
    return key
  }

  /// Replaces or adds the value. Objects on the way that do not exist are made.
  func apply(to document: inout JSONValue, mistakes: JSONMistakes) {
    Self.set(self.value, at: self.path[...], pointer: "", in: &document, mistakes: mistakes)
  }

  private static func set(
    _ value: JSONValue, at path: ArraySlice<String>, pointer: String, in target: inout JSONValue,
    mistakes: JSONMistakes
  ) {
    guard let name = path.first else {
      target = value
      return
    }
    let pointer = JSONReader.path(pointer, name)
    let rest = path.dropFirst()
    switch target.content {
    case .object(var members):
      if let index = members.firstIndex(where: { $0.name == name }) {
        Self.set(
          value, at: rest, pointer: pointer, in: &members[index].value, mistakes: mistakes)
      } else {
        var made = JSONValue(.object([]))
        Self.set(value, at: rest, pointer: pointer, in: &made, mistakes: mistakes)
        members.append(JSONMember(name, made))
      }
      target.content = .object(members)
    case .array(var elements):
      guard let index = Int(name), elements.indices.contains(index) else {
        let range = elements.isEmpty ? "the array is empty" : "known: 0 to \(elements.count - 1)"
        mistakes.append(
          JSONMistake(
            path: pointer, position: JSONValue.Position(),
            message: "--set does not name an element of the array; \(range)"))
        return
      }
      Self.set(value, at: rest, pointer: pointer, in: &elements[index], mistakes: mistakes)
      target.content = .array(elements)
    default:
      mistakes.append(
        JSONMistake(
          path: pointer, position: JSONValue.Position(),
          message: "--set goes into \(target.kind), which has no members"))
    }
  }
}

extension JSONValue {
  fileprivate var withoutPositions: JSONValue {
    switch self.content {
    case .array(let elements): JSONValue(.array(elements.map(\.withoutPositions)))
    case .object(let members):
      JSONValue(.object(members.map { JSONMember($0.name, $0.value.withoutPositions) }))
    default: JSONValue(self.content)
    }
  }

  /// The first name of a secret at any depth.
  fileprivate var firstSecretKey: String? {
    switch self.content {
    case .array(let elements): elements.lazy.compactMap(\.firstSecretKey).first
    case .object(let members):
      members.lazy.compactMap {
        Secret.keys.contains($0.name) ? $0.name : $0.value.firstSecretKey
      }.first
    default: nil
    }
  }
}
