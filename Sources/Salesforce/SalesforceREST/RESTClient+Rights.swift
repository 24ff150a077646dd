extension RESTClient {
  /// Which of some user permissions the user of the session has, by profile or permission set.
  ///
  /// Source: the object `UserPermissionAccess`, whose only row describes the running user.
  ///
  /// - Parameter names: API names such as `ModifyAllData`.
  package func granted(of names: [String]) async throws -> Set<String> {
    let fields = names.map { "Permissions\($0)" }.joined(separator: ", ")
    let page = try await self.query("SELECT \(fields) FROM UserPermissionAccess LIMIT 1")
    guard let row = page.records.first else {
      throw RESTError(.retry, "UserPermissionAccess has no row for this user")
    }
    return Set(names.filter { row["Permissions\($0)"] == "true" })
  }
}
