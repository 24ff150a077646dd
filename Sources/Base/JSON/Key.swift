/// A key of an object of a configuration file, declared once: reading, the JSON Schema and the
/// reference page follow from the declaration.
///
/// ```swift
/// struct CommitConfiguration: KeyedObject {
///   var maxDelay = Duration.seconds(1)
///
///   static var keys: [Key<Self>] {
///     [
///       .key(
///         "max_delay", \.maxDelay, .duration(in: .milliseconds(1) ... .seconds(600)),
///         "How long an event waits for others before it is committed.", example: "5s")
///     ]
///   }
/// }
/// ```
public struct Key<Object> {
  /// Made when it is needed: reading a file does not make its schema.
  public let declaration: () -> KeyDeclaration
  /// Reads the member into the object. False if a required one is missing or not usable.
  let read: (JSONReader, inout Object) -> Bool
}

/// An object of a configuration file. A new instance has the defaults; a property of a required key may
/// have any value, since the object is not used without the key.
public protocol KeyedObject {
  init()

  static var keys: [Key<Self>] { get }

  /// Reports what is wrong with the values of several keys, after each has been read.
  mutating func check(_ reader: JSONReader)
}

extension KeyedObject {
  public mutating func check(_ reader: JSONReader) {}

  public static var declarations: [KeyDeclaration] { self.keys.declarations() }
}

extension Array {
  public func declarations<Object>() -> [KeyDeclaration] where Element == Key<Object> {
    self.map { $0.declaration() }
  }
}

/// What there is to know of a key.
public struct KeyDeclaration {
  /// Whether the value of a key is to be hidden from output and command lines.
  public enum Secrecy: Sendable {
    case open
    case secret
    /// An address with which a password may be given.
    case addressWithPassword
    /// An address of another kind, in which one may stand by mistake.
    case address
  }

  public var name: String
  /// With the range.
  public var description: String
  public var isRequired: Bool
  public var secrecy: Secrecy
  /// Values just beyond the range.
  public var excluded: [JSONValue]
  let makeFallback: () -> JSONValue?
  let makeExample: () -> JSONValue?
  let makeSchema: () -> JSONSchema
  let makeObjects: () -> [[KeyDeclaration]]
  /// Reads the member from an object and reports mistakes.
  public let check: (JSONReader) -> Void

  /// What the program takes without the member; nil if that is not a value.
  public var fallback: JSONValue? { self.makeFallback() }
  /// Nil is a mistake of the declaration.
  public var example: JSONValue? { self.makeExample() }
  public var schema: JSONSchema { self.makeSchema() }
  /// The forms that an object in this place, or in a list in this place, can have.
  public var objects: [[KeyDeclaration]] { self.makeObjects() }

  /// The key in an object that has no other.
  public var alone: Self {
    var key = self
    key.isRequired = true
    return key
  }
}

extension Key where Object: KeyedObject {
  /// - Parameters:
  ///   - fallback: what the program takes without the key, if the property does not tell.
  ///   - example: if nil, one is made, where the kind of value permits it.
  public static func key<Value>(
    _ name: String, _ property: WritableKeyPath<Object, Value>, _ kind: Kind<Value>,
    _ description: String, default fallback: JSONValue? = nil, example: JSONValue? = nil,
    secrecy: KeyDeclaration.Secrecy = .open
  ) -> Self {
    Self(
      name, kind, description, isRequired: false,
      fallback: { fallback ?? kind.write(Object()[keyPath: property]) }, example, secrecy,
      set: { $0[keyPath: property] = $1 })
  }

  /// A key whose property is nil by default.
  public static func key<Value>(
    _ name: String, _ property: WritableKeyPath<Object, Value?>, _ kind: Kind<Value>,
    _ description: String, default fallback: JSONValue? = nil, example: JSONValue? = nil,
    secrecy: KeyDeclaration.Secrecy = .open
  ) -> Self {
    Self(
      name, kind, description, isRequired: false,
      fallback: { fallback ?? Object()[keyPath: property].flatMap(kind.write) }, example, secrecy,
      set: { $0[keyPath: property] = $1 })
  }

  public static func required<Value>(
    _ name: String, _ property: WritableKeyPath<Object, Value>, _ kind: Kind<Value>,
    _ description: String, example: JSONValue? = nil,
    secrecy: KeyDeclaration.Secrecy = .open
  ) -> Self {
    Self(
      name, kind, description, isRequired: true, fallback: { nil }, example, secrecy,
      set: {
        $0[keyPath: property] = $1
      })
  }

  /// A required key whose property is nil without it.
  public static func required<Value>(
    _ name: String, _ property: WritableKeyPath<Object, Value?>, _ kind: Kind<Value>,
    _ description: String, example: JSONValue? = nil,
    secrecy: KeyDeclaration.Secrecy = .open
  ) -> Self {
    Self(
      name, kind, description, isRequired: true, fallback: { nil }, example, secrecy,
      set: {
        $0[keyPath: property] = $1
      })
  }

  /// A key that is read for its mistakes alone.
  public static func noted<Value>(
    _ name: String, _ kind: Kind<Value>, _ description: String, isRequired: Bool = false,
    default fallback: JSONValue? = nil, example: JSONValue? = nil,
    secrecy: KeyDeclaration.Secrecy = .open
  ) -> Self {
    Self(
      name, kind, description, isRequired: isRequired, fallback: { fallback }, example, secrecy,
      set: { _, _ in })
  }

  /// The key that names the kind of an object: one word, always the same.
  ///
  /// - Parameter noun: what it names, for the message about another word.
  public static func type(_ word: String, called noun: String, _ description: String) -> Self {
    .noted("type", .constant(word, called: noun), description, isRequired: true)
  }

  /// Keys of this object that the file has in an object of their own.
  public static func group(_ name: String, _ keys: [Self], _ description: String) -> Self {
    Self(
      declaration: {
        KeyDeclaration(
          name: name, description: description, isRequired: false, secrecy: .open, excluded: [],
          makeFallback: { nil }, makeExample: { .example(of: keys.declarations()) },
          makeSchema: { .object(keys.declarations()) }, makeObjects: { [keys.declarations()] },
          check: { $0.object(name)?.check(keys.declarations()) })
      },
      read: { reader, object in reader.object(name)?.read(into: &object, keys) ?? true })
  }

  private init<Value>(
    _ name: String, _ kind: Kind<Value>, _ description: String, isRequired: Bool,
    fallback: @escaping () -> JSONValue?, _ example: JSONValue?, _ secrecy: KeyDeclaration.Secrecy,
    set: @escaping (inout Object, Value) -> Void
  ) {
    self.declaration = {
      KeyDeclaration(
        name: name, description: kind.range.map { "\(description) \($0)" } ?? description,
        isRequired: isRequired, secrecy: secrecy, excluded: kind.excluded, makeFallback: fallback,
        makeExample: { example ?? kind.example(fallback()) }, makeSchema: kind.schema,
        makeObjects: kind.objects, check: { _ = kind.read($0, name, isRequired) })
    }
    self.read = { reader, object in
      guard let value = kind.read(reader, name, isRequired) else { return !isRequired }
      set(&object, value)
      return true
    }
  }
}

extension JSONReader {
  /// Reads an object with all its keys, and reports others.
  ///
  /// - Returns: nil if a required key is missing or not usable.
  public func read<Object: KeyedObject>(_ type: Object.Type = Object.self) -> Object? {
    self.read(Object.keys)
  }

  /// - Parameter keys: all of the object's, and others that it has in this place.
  public func read<Object: KeyedObject>(_ keys: [Key<Object>]) -> Object? {
    var object = Object()
    let isComplete = self.read(into: &object, keys)
    object.check(self)
    return isComplete ? object : nil
  }

  /// - Returns: false if a required key is missing or not usable.
  fileprivate func read<Object: KeyedObject>(
    into object: inout Object, _ keys: [Key<Object>]
  ) -> Bool {
    var isComplete = true
    for key in keys where !key.read(self, &object) { isComplete = false }
    self.finish()
    return isComplete
  }

  fileprivate func check(_ keys: [KeyDeclaration]) {
    for key in keys { key.check(self) }
    self.finish()
  }
}

extension JSONValue {
  /// An object with the required keys, or with the first if none is required.
  static func example(of keys: [KeyDeclaration]) -> JSONValue {
    let required = keys.filter(\.isRequired)
    let shown = required.isEmpty ? Array(keys.prefix(1)) : required
    return JSONValue(
      .object(shown.compactMap { key in key.example.map { JSONMember(key.name, $0) } }))
  }
}
