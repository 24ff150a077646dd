package import JSON

/// A stage that a pipeline file can name.
package protocol ConfiguredTransform: Transform, SendableMetatype {
  /// What the stage's object says; its keys are those but `type`.
  associatedtype Options: KeyedObject & Sendable

  /// The value of `type` in the pipeline file.
  static var type: String { get }

  /// The stage in a sentence or two, for the schema of pipeline files.
  static var schemaDescription: String { get }

  init(_ options: Options)
}

extension ConfiguredTransform {
  package var kind: String { Self.type }
  package var isConfigured: Bool { true }

  private static var keys: [Key<Options>] {
    [.type(Self.type, called: "stage", "Kind of the stage.")] + Options.keys
  }

  static var declarations: [KeyDeclaration] { Self.keys.map(\.declaration) }

  /// - Returns: makes a stage for each run, as far as the options could be read.
  static func read(_ reader: JSONReader) -> @Sendable () -> any Transform {
    let options = reader.readPart(Self.keys).object
    return { Self(options) }
  }
}

/// The stages a pipeline file can name. To add one, add its line.
package enum TransformRegistry {
  static var types: [any ConfiguredTransform.Type] {
    [
      Flatten.self,
      Select.self,
      Drop.self,
      Rename.self,
      Filter.self,
      SetColumns.self,
      Route.self,
      Mask.self,
      Cast.self,
    ]
  }

  /// The accepted values of `type`, for messages and for the schema of pipeline files.
  package static var names: [String] { self.types.map { $0.type } }

  /// Reads the stage that an element of `stages` describes.
  ///
  /// - Returns: makes the stage, new for each run; nil if the type is unknown. Check
  ///   `reader.mistakes` even if there is a stage.
  package static func stage(reading reader: JSONReader) -> (@Sendable () -> any Transform)? {
    guard let name = reader.string("type", required: true) else { return nil }
    guard let type = self.types.first(where: { $0.type == name }) else {
      reader.reportUnknown("type", name, called: "stage", known: self.names)
      return nil
    }
    return type.read(reader)
  }

  /// The keys of each kind of stage.
  package static var declarations: [[KeyDeclaration]] { self.types.map { $0.declarations } }
}
