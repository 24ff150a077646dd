/// The values of a run that stages can use. The same for every run of a pipeline: events that are
/// exported again become the same rows.
public struct RunValues: Sendable {
  /// Name of the pipeline.
  public var pipeline: String
  /// 18 characters; empty when nobody has logged in.
  public var org: String
  /// How the org's fields are classified; nil where nobody can ask the org.
  public var classification: OrgClassification?

  public init(pipeline: String, org: String, classification: OrgClassification? = nil) {
    self.pipeline = pipeline
    self.org = org
    self.classification = classification
  }
}
