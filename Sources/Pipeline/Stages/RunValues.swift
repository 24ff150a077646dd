/// What a stage can know besides its events. The same for every run of a pipeline: events that are
/// exported again become the same rows.
public struct RunValues: Sendable, Equatable {
  /// Name of the pipeline.
  public var pipeline: String
  /// 18 characters; empty when nobody has logged in.
  public var org: String

  public init(pipeline: String, org: String) {
    self.pipeline = pipeline
    self.org = org
  }
}
