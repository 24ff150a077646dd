public import JSON

/// A stage that a pipeline file can name.
public protocol ConfiguredTransform: Transform {
  /// The value of `type` in the pipeline file.
  static var type: String { get }

  /// The stage in a sentence or two, for the schema of pipeline files.
  static var schemaDescription: String { get }

  /// The members of the stage's object except `type`, for the schema.
  static var schemaMembers: [JSONSchema.Member] { get }

  /// Reads the members of the stage's object except `type`, and reports mistakes. Nil if no stage
  /// can be created at all. The caller reports members that were not read.
  init?(reading reader: JSONReader)
}

extension ConfiguredTransform {
  public var kind: String { Self.type }
}

/// The stages a pipeline file can name. To add one, add its line.
public enum TransformRegistry {
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
  public static var names: [String] { self.types.map { $0.type } }

  /// Creates the stage that an element of `stages` describes.
  ///
  /// - Returns: nil if no stage can be created. Check `reader.mistakes` even if there is a stage.
  public static func transform(reading reader: JSONReader) -> (any Transform)? {
    guard let name = reader.string("type", required: true) else { return nil }
    guard let type = self.types.first(where: { $0.type == name }) else {
      reader.reportUnknown("type", name, called: "stage", known: self.names)
      return nil
    }
    defer { reader.finish() }
    return type.init(reading: reader)
  }
}
