extension DataAPI {
  private static let known: Set<String> = [
    "ApiEnabled", "AuthorApex", "CustomizeApplication", "ManageUsers", "ModifyAllData",
    "ViewAllData", "ViewAllUsers", "ViewSetup",
  ]

  /// The answer to `SELECT PermissionsX, … FROM UserPermissionAccess [LIMIT 1]`: one row, about the
  /// user that asks. Nil for queries of other objects.
  ///
  /// - Parameter permissions: those of the user.
  package static func permissionAccess(
    _ text: String, permissions: Set<String>
  ) throws(APIRefusal) -> [UInt8]? {
    let words = text.split { $0 == " " || $0 == "," }.map(String.init)
    guard let from = words.firstIndex(where: { $0.lowercased() == "from" }), from + 1 < words.count,
      words[from + 1] == "UserPermissionAccess", words.first?.lowercased() == "select"
    else { return nil }
    var members =
      "\"attributes\":{\"type\":\"UserPermissionAccess\",\"url\":\"/services/data/v"
      + "\(Self.version)/sobjects/UserPermissionAccess/000000000000000AAA\"}"
    for field in words[1..<from] {
      guard field.hasPrefix("Permissions"), Self.known.contains(String(field.dropFirst(11))) else {
        throw .unknownField(field, of: "UserPermissionAccess")
      }
      let isGranted = permissions.contains(String(field.dropFirst(11)))
      members += ",\"\(field)\":\(isGranted)"
    }
    return Array("{\"totalSize\":1,\"done\":true,\"records\":[{\(members)}]}".utf8)
  }
}
