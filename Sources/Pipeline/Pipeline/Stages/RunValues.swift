/// The values of a run that stages can use. They are the same for every run of a pipeline, so that
/// events that are exported again become the same rows.
package struct RunValues: Sendable {
  /// Name of the pipeline.
  package var pipeline: String
  /// 18 characters; empty without a login.
  package var org: String
  /// How the org's fields are classified; nil if the org cannot be queried.
  package var classification: OrgClassification?

  package init(pipeline: String, org: String, classification: OrgClassification? = nil) {
    self.pipeline = pipeline
    self.org = org
    self.classification = classification
  }
}
