/// A file that has got its final name and its line in the manifest.
public struct FinishedFile: Sendable, Equatable {
  /// Relative to the sink's directory.
  public var name: String
  public var events: Int64
  /// Compressed.
  public var byteCount: Int
}
