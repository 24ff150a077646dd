/// A refusal of the REST API: `[{"message": …, "errorCode": …}]` (RESTAndBulk.md#answers).
package struct APIRefusal: Error, Equatable {
  package var status: Int
  package var code: String
  package var message: String

  package init(_ code: String, _ message: String, status: Int = 400) {
    (self.status, self.code, self.message) = (status, code, message)
  }

  static func malformed(_ message: String) -> APIRefusal { APIRefusal("MALFORMED_QUERY", message) }

  static func unknownField(_ name: String, of object: String) -> APIRefusal {
    APIRefusal(
      "INVALID_FIELD",
      "No such column '\(name)' on entity '\(object)'. If you are attempting to use a custom "
        + "field, be sure to append the '__c' after the custom field name.")
  }

  static func unknownObject(_ name: String) -> APIRefusal {
    APIRefusal("INVALID_TYPE", "sObject type '\(name)' is not supported.")
  }
}
