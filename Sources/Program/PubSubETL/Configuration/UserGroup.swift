import Glibc

/// Groups of the system, for files that others are to read.
enum UserGroup {
  struct LookUpError: Error, CustomStringConvertible {
    /// `this system has no group 'x'`
    var description: String
  }

  /// The number of a group, which this user may give files to.
  ///
  /// - Parameter name: a name, or a number in digits.
  static func id(of name: String) throws(LookUpError) -> UInt32 {
    guard let id = Self.number(of: name) else {
      throw LookUpError(description: "this system has no group '\(name)'")
    }
    guard geteuid() == 0 || id == getegid() || Self.ownGroups.contains(id) else {
      throw LookUpError(
        description:
          "this user is not a member of group '\(name)' and cannot give it files; add the user "
          + "to the group (usermod -a -G)")
    }
    return id
  }

  private static func number(of name: String) -> gid_t? {
    // Long enough for a group with some hundred members; longer entries are not found.
    var buffer = [CChar](repeating: 0, count: 64 << 10)
    var entry = group()
    var found: UnsafeMutablePointer<group>?
    if getgrnam_r(name, &entry, &buffer, buffer.count, &found) == 0, found != nil {
      return entry.gr_gid
    }
    return gid_t(name)
  }

  private static var ownGroups: [gid_t] {
    let count = getgroups(0, nil)
    guard count > 0 else { return [] }
    var groups = [gid_t](repeating: 0, count: Int(count))
    return Array(groups.prefix(Int(max(getgroups(count, &groups), 0))))
  }
}
