import SalesforceREST

extension ConnectionCheck {
  /// Permissions that allow much more than reading, by their names in Setup.
  private static let wideRights = [
    ("ModifyAllData", "Modify All Data"), ("ViewAllData", "View All Data"),
    ("ManageUsers", "Manage Users"), ("AuthorApex", "Author Apex"),
    ("CustomizeApplication", "Customize Application"),
  ]

  /// A line about permissions of the run-as user that this pipeline does not need. One call. A
  /// refused query does not fail the check.
  static func rights(_ session: Session) async -> String {
    let needed = PipelineRights(session.configuration).userPermissions
    let client = session.connection.makeRESTClient()
    let granted: Set<String>
    do {
      granted = try await client.granted(of: Self.wideRights.map(\.0))
    } catch {
      return "rights: not checked: \(RunFailure(error).message)"
    }
    let excess = Self.wideRights.filter { granted.contains($0.0) && !needed.contains($0.0) }
    guard !excess.isEmpty else {
      return "rights: no broad permissions beyond those that the pipeline needs"
    }
    return "rights: attention: the user has \(excess.map(\.1).joined(separator: ", ")), which this "
      + "pipeline does not need; pubsub-etl permissions writes a permission set that is enough"
  }
}
