/// How the columns of a flattened record are named.
package enum FlattenNaming: String, Sendable, CaseIterable {
  /// Parent and child joined by `_`: `BillingAddress_City`.
  case path
  /// The component's name in SOQL: `BillingCity` (ChangeEvents.md#compound-fields).
  case sobject

  /// The name of a child whose record has the given column name.
  package func name(of child: String, in parent: String) -> String {
    switch self {
    case .path: "\(parent)_\(child)"
    case .sobject: Self.component(child, of: parent)
    }
  }

  /// - `BillingAddress.City` is `BillingCity`, `Address.City` is `City`: the suffix is dropped.
  ///   Standard locations follow the same rule (`LastKnownLocation.Latitude` is
  ///   `LastKnownLatitude`).
  /// - `Name.FirstName` is `FirstName`.
  /// - `Loc__c.Latitude` is `Loc__Latitude__s`, and so are the parts of custom addresses.
  /// - Anything else has no component fields in SOQL and is joined by `_`.
  private static func component(_ child: String, of parent: String) -> String {
    if parent == "Name" { return child }
    if parent.hasSuffix("__c") { return "\(parent.dropLast(3))__\(child)__s" }
    for suffix in ["Address", "Location"] where parent.hasSuffix(suffix) {
      return parent.dropLast(suffix.count) + child
    }
    return "\(parent)_\(child)"
  }
}
