/// A kind of answer of a store other than success, and what to do about it.
///
/// The first row of `all` that fits decides. Source: "Error responses" of the Amazon S3 API reference,
/// and what other stores answer.
struct StoreRefusal {
  /// Empty: any.
  var statuses: [ClosedRange<Int>] = []
  /// Codes of the store; empty: any or none.
  var codes: [String] = []
  /// The body is not an error of a store: an HTML page, or nothing.
  var isForeign = false
  var disposition: ObjectStoreError.Disposition
  /// What the user can do, as part of a message; empty if there is nothing to do.
  var advice = ""

  private static let inBetween =
    "this is not the response of an object store; check the endpoint, and for a proxy or firewall in "
    + "between"
  private static let isBug = "the store does not accept the request; please report this"

  static let all: [StoreRefusal] = [
    // Who asks, and what for.
    StoreRefusal(
      codes: ["ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired"],
      disposition: .credentials, advice: "the temporary credentials have expired; renew them"),
    StoreRefusal(
      codes: ["InvalidToken", "InvalidClientTokenId", "UnrecognizedClientException"],
      disposition: .credentials,
      advice: "the session token does not belong to the access key; check the session token"),
    StoreRefusal(
      codes: ["InvalidAccessKeyId"], disposition: .credentials,
      advice: "the store does not know the access key; check the credentials and the endpoint"),
    StoreRefusal(
      codes: ["SignatureDoesNotMatch"], disposition: .denied,
      advice: "check the secret key, and whether a proxy changes requests"),
    StoreRefusal(
      codes: ["RequestTimeTooSkewed", "RequestExpired"], disposition: .denied,
      advice: "set this machine's clock, for example with NTP"),
    StoreRefusal(
      codes: ["AllAccessDisabled", "AccountProblem", "NotSignedUp", "InvalidPayer"],
      disposition: .denied, advice: "the owner of the account has to settle this with the provider"),
    StoreRefusal(
      codes: ["InvalidIdentityToken", "IDPRejectedClaim"], disposition: .denied,
      advice: "check the token file, the role's trust policy and its identity provider"),
    // Where the bucket is.
    StoreRefusal(
      codes: [
        "PermanentRedirect", "TemporaryRedirect", "Redirect", "AuthorizationHeaderMalformed",
        "IllegalLocationConstraintException", "InvalidRegionName",
      ], disposition: .configuration),
    StoreRefusal(statuses: [300...399], disposition: .configuration),
    StoreRefusal(
      codes: ["NoSuchBucket", "InvalidBucketName"], disposition: .configuration,
      advice: "check the name of the bucket, the endpoint, and whether it needs path_style"),
    // What is there.
    StoreRefusal(codes: ["NoSuchKey", "NoSuchUpload"], disposition: .missing),
    StoreRefusal(statuses: [412...412], disposition: .preconditionFailed),
    StoreRefusal(codes: ["PreconditionFailed"], disposition: .preconditionFailed),
    StoreRefusal(
      codes: ["EntityTooLarge"], disposition: .full,
      advice: "the store takes no object of this size; make files smaller"),
    StoreRefusal(
      codes: [
        "QuotaExceeded", "InsufficientStorage", "XMinioStorageFull", "InsufficientCapacity",
      ], disposition: .full, advice: "free space in the store or raise its quota"),
    StoreRefusal(
      statuses: [507...507], disposition: .full,
      advice: "free space in the store or raise its quota"),
    // What passes.
    StoreRefusal(
      codes: ["BadDigest", "XAmzContentSHA256Mismatch", "InvalidDigest", "IncompleteBody"],
      disposition: .retry,
      advice: "the store received other bytes than the digest was computed from"),
    StoreRefusal(
      codes: [
        "RequestTimeout", "SlowDown", "ServiceUnavailable", "InternalError", "OperationAborted",
        "ConditionalRequestConflict", "Throttling", "ThrottlingException", "RequestLimitExceeded",
        "TooManyRequests", "ServerBusy", "IDPCommunicationError",
      ], disposition: .retry),
    StoreRefusal(codes: ["NotImplemented"], disposition: .unsupported),
    StoreRefusal(statuses: [501...501], disposition: .unsupported),
    StoreRefusal(statuses: [408...409, 425...425, 429...429, 500...599], disposition: .retry),
    // The rest goes by status. The response to HEAD has no body, so it lacks the code.
    StoreRefusal(
      statuses: [400...400], isForeign: true, disposition: .credentials,
      advice: "the credentials may have expired, or the response is not that of an object store"),
    StoreRefusal(
      statuses: [403...403], isForeign: true, disposition: .denied,
      advice: "check the credentials and their permissions, and for a proxy in between"),
    StoreRefusal(
      statuses: [401...401, 403...403], disposition: .denied,
      advice:
        "check the credentials and their permissions on the bucket; without s3:ListBucket, an "
        + "object that does not exist is denied, too"),
    StoreRefusal(
      statuses: [404...404], isForeign: true, disposition: .configuration, advice: inBetween),
    StoreRefusal(statuses: [405...405], disposition: .unsupported),
    StoreRefusal(isForeign: true, disposition: .configuration, advice: inBetween),
    StoreRefusal(disposition: .bug, advice: isBug),
  ]

  static func first(status: Int, code: String?) -> StoreRefusal {
    let fitting = Self.all.first { refusal in
      (refusal.statuses.isEmpty || refusal.statuses.contains { $0.contains(status) })
        && (refusal.codes.isEmpty || code.map(refusal.codes.contains) == true)
        && (!refusal.isForeign || code == nil)
    }
    // The last row fits everything.
    return fitting ?? StoreRefusal(disposition: .bug, advice: Self.isBug)
  }
}
