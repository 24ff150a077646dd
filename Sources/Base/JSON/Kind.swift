/// A kind of values in a configuration file: how they are read, written and described.
package struct Kind<Value> {
  let schema: () -> JSONSchema
  /// The range in a sentence, if the schema does not have it as numbers.
  private(set) var range: String?
  let objects: () -> [[KeyDeclaration]]
  let makeExample: (_ fallback: JSONValue?) -> JSONValue?
  package let read: (_ reader: JSONReader, _ name: String, _ isRequired: Bool) -> Value?
  /// Nil for a value that is not written out as a default.
  let write: (Value) -> JSONValue?

  /// - Parameters:
  ///   - objects: the forms that an object in this place can have.
  ///   - example: gets the default, which is not a telling example.
  ///   - read: reports what is wrong, and a missing member if it is required.
  package init(
    _ schema: @autoclosure @escaping () -> JSONSchema,
    objects: @autoclosure @escaping () -> [[KeyDeclaration]] = [],
    example: @escaping (_ fallback: JSONValue?) -> JSONValue? = { _ in nil },
    write: @escaping (Value) -> JSONValue? = { _ in nil },
    read: @escaping (_ reader: JSONReader, _ name: String, _ isRequired: Bool) -> Value?
  ) {
    (self.schema, self.objects, self.makeExample) = (schema, objects, example)
    (self.read, self.write) = (read, write)
  }

  /// The same kind, as a type of one's own.
  ///
  /// - Parameter convert: reports what is wrong with the value.
  package func map<Other>(
    write: @escaping (Other) -> JSONValue? = { _ in nil },
    to convert: @escaping (_ reader: JSONReader, _ name: String, Value) -> Other?
  ) -> Kind<Other> {
    let read = self.read
    var kind = Kind<Other>(
      self.schema(), objects: self.objects(), example: self.makeExample, write: write
    ) { reader, name, isRequired in
      read(reader, name, isRequired).flatMap { convert(reader, name, $0) }
    }
    kind.range = self.range
    return kind
  }

  /// The same kind, as a type of one's own.
  ///
  /// - Parameter convert: the description of what it throws is the mistake.
  package func parsed<Other>(
    write: @escaping (Other) -> JSONValue? = { _ in nil },
    _ convert: @escaping (Value) throws -> Other
  ) -> Kind<Other> {
    self.map(write: write) { reader, name, value in
      do {
        return try convert(value)
      } catch {
        reader.report(name, "\(error)")
        return nil
      }
    }
  }

  /// The values of the kind about which there is nothing to report.
  ///
  /// - Parameter mistake: what is wrong with a value; nil if nothing is.
  package func checked(_ mistake: @escaping (Value) -> String?) -> Self {
    self.map(write: self.write) { reader, name, value in
      guard let message = mistake(value) else { return value }
      reader.report(name, message)
      return nil
    }
  }
}

/// What the declaration of a key needs of the kind of its values.
protocol DescribedKind {
  var schema: () -> JSONSchema { get }
  var range: String? { get }
  var objects: () -> [[KeyDeclaration]] { get }
  var makeExample: (_ fallback: JSONValue?) -> JSONValue? { get }

  func check(_ reader: JSONReader, _ name: String, _ isRequired: Bool)
}

extension Kind: DescribedKind {
  func check(_ reader: JSONReader, _ name: String, _ isRequired: Bool) {
    _ = self.read(reader, name, isRequired)
  }
}

extension Kind {
  /// A text that stands for a value.
  ///
  /// - Parameter expectation: the message for a text that has no value.
  package static func text(
    _ schema: JSONSchema = .text(minLength: 1), orElse expectation: String,
    _ convert: @escaping (String) -> Value?
  ) -> Self {
    Kind<String>.string(schema).map { reader, name, text in
      let value = convert(text)
      if value == nil { reader.report(name, expectation) }
      return value
    }
  }
}

extension Kind<String> {
  package static func string(_ schema: JSONSchema = .text()) -> Self {
    Self(schema, write: { .string($0) }, read: { $0.string($1, required: $2) })
  }

  /// A text that is not empty.
  package static var text: Self {
    Self.string(.text(minLength: 1)).checked { $0.isEmpty ? "must not be empty" : nil }
  }

  /// The name of something: one word, always the same.
  ///
  /// - Parameter noun: what it names, for the message about another one.
  package static func constant(_ word: String, called noun: String) -> Self {
    Self(
      .constant(.string(word)), example: { _ in .string(word) }, write: { .string($0) },
      read: { reader, name, isRequired in
        guard let text = reader.string(name, required: isRequired) else { return nil }
        if text != word { reader.reportUnknown(name, text, called: noun, known: [word]) }
        return text
      })
  }
}

extension Kind<[String]> {
  package static func strings(_ schema: JSONSchema) -> Self {
    Self(schema) { $0.strings($1, required: $2) }
  }
}

extension Kind<Bool> {
  package static var bool: Self {
    Self(
      .boolean(), example: { .boolean($0?.boolean == false) }, write: { .boolean($0) },
      read: { $0.bool($1, required: $2) })
  }
}

extension Kind<Int> {
  package static func integer(in range: ClosedRange<Int>) -> Self {
    Self(
      .oneOf([
        .integer(
          from: range.lowerBound, through: range.upperBound == .max ? nil : range.upperBound),
        .reference("variable"),
      ]), write: { .integer($0) }, read: { $0.integer($1, in: range, required: $2) })
  }

  /// A number of bytes: `"128MiB"`.
  package static func byteCount(in range: ClosedRange<Int>) -> Self {
    var kind = Self(
      .oneOf([
        .integer(from: range.lowerBound, through: range.upperBound), .reference("byteCount"),
      ]), write: { .string(JSONReader.text(bytes: $0)) },
      read: { $0.byteCount($1, in: range, required: $2) })
    kind.range = range.sentence { JSONReader.text(bytes: $0) }
    return kind
  }
}

extension Kind<Duration> {
  /// A length of time: `"15s"`.
  package static func duration(in range: ClosedRange<Duration>) -> Self {
    var kind = Self(
      .reference("duration"), write: { .string(JSONReader.text(duration: $0)) },
      read: { $0.duration($1, in: range, required: $2) })
    kind.range = range.sentence { JSONReader.text(duration: $0) }
    return kind
  }
}

extension Kind<Double> {
  package static var fraction: Self {
    Self(.oneOf([.fraction(), .reference("variable")])) { reader, name, _ in reader.fraction(name) }
  }
}

extension Kind where Value: RawRepresentable<String> & CaseIterable {
  /// One of the words.
  package static func choice(called noun: String = "value") -> Self {
    Self(
      .choice(of: Value.self),
      example: { fallback in
        let words = Value.allCases.map { JSONValue.string($0.rawValue) }
        return words.first { $0 != fallback } ?? words.first
      }, write: { .string($0.rawValue) }, read: { $0.choice($1, called: noun, required: $2) })
  }
}

extension Kind where Value: KeyedObject {
  package static var object: Self {
    Self(
      .object(Value.declarations), objects: [Value.declarations],
      example: { _ in .example(of: Value.declarations) },
      read: { $0.object($1, required: $2)?.read() })
  }
}

extension ClosedRange {
  fileprivate func sentence(_ text: (Bound) -> String) -> String {
    "\(text(self.lowerBound)) to \(text(self.upperBound))."
  }
}
