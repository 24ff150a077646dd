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
package struct Key<Object> {
  package let declaration: KeyDeclaration
  /// Reads the member into the object. False if a required one is missing or not usable.
  let read: (JSONReader, inout Object) -> Bool
}

/// An object of a configuration file. A new instance has the defaults; a property of a required key may
/// have any value, since the object is not used without the key.
package protocol KeyedObject {
  init()

  static var keys: [Key<Self>] { get }

  /// Reports what is wrong with the values of several keys, after each has been read.
  mutating func check(_ reader: JSONReader)
}

extension KeyedObject {
  package mutating func check(_ reader: JSONReader) {}

  package static var declarations: [KeyDeclaration] { self.keys.map(\.declaration) }
}

/// Everything that is known about a key, whatever the type of its values.
package struct KeyDeclaration {
  /// Whether the value of a key is to be hidden from output and command lines.
  package enum Secrecy: Sendable {
    case open
    case secret
    /// An address that may contain a password.
    case addressWithPassword
    /// An address of another kind, in which one may occur by mistake.
    case address
  }

  package let name: String
  package private(set) var isRequired: Bool
  package let secrecy: Secrecy
  private let text: String
  private let kind: any DescribedKind
  /// Evaluated only for a schema, like those of the kind: reading a file needs none of them.
  private let makeFallback: () -> JSONValue?
  private let ownExample: JSONValue?

  init(
    _ name: String, _ kind: any DescribedKind, _ text: String, isRequired: Bool = false,
    fallback: @escaping () -> JSONValue? = { nil }, example: JSONValue? = nil,
    secrecy: Secrecy = .open
  ) {
    (self.name, self.kind, self.text, self.isRequired) = (name, kind, text, isRequired)
    (self.makeFallback, self.ownExample, self.secrecy) = (fallback, example, secrecy)
  }

  /// With the range.
  package var description: String { self.kind.range.map { "\(self.text) \($0)" } ?? self.text }
  /// The value that the program uses without the member; nil if that is not a value.
  package var fallback: JSONValue? { self.makeFallback() }
  /// Nil is a mistake of the declaration.
  package var example: JSONValue? { self.ownExample ?? self.kind.makeExample(self.fallback) }
  package var schema: JSONSchema { self.kind.schema() }
  /// The forms that an object in this place, or in a list in this place, can have.
  package var objects: [[KeyDeclaration]] { self.kind.objects() }

  /// Reads the member from an object and reports mistakes.
  package func check(_ reader: JSONReader) {
    self.kind.check(reader, self.name, self.isRequired)
  }

  /// The key in an object that has no other.
  package var alone: Self {
    var key = self
    key.isRequired = true
    return key
  }
}

extension Key where Object: KeyedObject {
  /// - Parameters:
  ///   - fallback: the value without the key, unless it is that of the property.
  ///   - example: if nil, one is made, if the kind of value permits it.
  package static func key<Value>(
    _ name: String, _ property: WritableKeyPath<Object, Value>, _ kind: Kind<Value>,
    _ description: String, default fallback: JSONValue? = nil, example: JSONValue? = nil,
    secrecy: KeyDeclaration.Secrecy = .open
  ) -> Self {
    Self(
      KeyDeclaration(
        name, kind, description,
        fallback: { fallback ?? kind.write(Object()[keyPath: property]) }, example: example,
        secrecy: secrecy), kind
    ) { $0[keyPath: property] = $1 }
  }

  package static func key<Value>(
    _ name: String, _ property: WritableKeyPath<Object, Value?>, _ kind: Kind<Value>,
    _ description: String, example: JSONValue? = nil, secrecy: KeyDeclaration.Secrecy = .open
  ) -> Self {
    Self(
      KeyDeclaration(
        name, kind, description, fallback: { Object()[keyPath: property].flatMap(kind.write) },
        example: example, secrecy: secrecy), kind
    ) { $0[keyPath: property] = $1 }
  }

  package static func required<Value>(
    _ name: String, _ property: WritableKeyPath<Object, Value>, _ kind: Kind<Value>,
    _ description: String, example: JSONValue? = nil, secrecy: KeyDeclaration.Secrecy = .open
  ) -> Self {
    Self(
      KeyDeclaration(
        name, kind, description, isRequired: true, example: example, secrecy: secrecy), kind
    ) {
      $0[keyPath: property] = $1
    }
  }

  /// A key that is read for its mistakes alone.
  package static func noted<Value>(
    _ name: String, _ kind: Kind<Value>, _ description: String, isRequired: Bool = false,
    default fallback: JSONValue? = nil, example: JSONValue? = nil,
    secrecy: KeyDeclaration.Secrecy = .open
  ) -> Self {
    Self(
      KeyDeclaration(
        name, kind, description, isRequired: isRequired, fallback: { fallback }, example: example,
        secrecy: secrecy), kind
    ) { _, _ in }
  }

  /// The key that names the kind of an object: one word, always the same.
  ///
  /// - Parameter noun: what it names, for the message about another word.
  package static func type(_ word: String, called noun: String, _ description: String) -> Self {
    .noted("type", .constant(word, called: noun), description, isRequired: true)
  }

  /// Keys of this object that the file has in an object of their own.
  package static func group(_ name: String, _ keys: [Self], _ description: String) -> Self {
    let declared = keys.map(\.declaration)
    let kind = Kind<Void>(
      .object(declared), objects: [declared], example: { _ in .example(of: declared) },
      read: { reader, name, _ in
        guard let object = reader.object(name) else { return }
        for key in declared { key.check(object) }
        object.finish()
      })
    return Self(declaration: KeyDeclaration(name, kind, description)) { reader, object in
      reader.object(name)?.read(into: &object, keys) ?? true
    }
  }

  private init<Value>(
    _ declaration: KeyDeclaration, _ kind: Kind<Value>,
    set: @escaping (inout Object, Value) -> Void
  ) {
    self.declaration = declaration
    self.read = { reader, object in
      guard let value = kind.read(reader, declaration.name, declaration.isRequired) else {
        return !declaration.isRequired
      }
      set(&object, value)
      return true
    }
  }
}

extension JSONReader {
  /// Reads an object with all its keys, and reports others.
  ///
  /// - Parameter keys: all of the object's, and others that it has in this place.
  /// - Returns: nil if a required key is missing or not usable.
  package func read<Object: KeyedObject>(_ keys: [Key<Object>] = Object.keys) -> Object? {
    let (object, isComplete) = self.readPart(keys)
    return isComplete ? object : nil
  }

  /// Reads what can be read of an object. It is complete if no required key is missing or not usable.
  package func readPart<Object: KeyedObject>(
    _ keys: [Key<Object>]
  ) -> (object: Object, isComplete: Bool) {
    var object = Object()
    let isComplete = self.read(into: &object, keys)
    object.check(self)
    return (object, isComplete)
  }

  /// - Returns: false if a required key is missing or not usable.
  fileprivate func read<Object>(into object: inout Object, _ keys: [Key<Object>]) -> Bool {
    var isComplete = true
    for key in keys where !key.read(self, &object) { isComplete = false }
    self.finish()
    return isComplete
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
