/// Where credentials come from.
package enum CredentialSource: Sendable {
  case keys(StoreCredentials)
  /// The file that the AWS tools share.
  ///
  /// - path: nil for `AWS_SHARED_CREDENTIALS_FILE`, else `~/.aws/credentials`.
  /// - profile: nil for `AWS_PROFILE`, else `default`.
  case sharedFile(path: String?, profile: String?)
  /// What an orchestrator offers its containers, by the variables `AWS_CONTAINER_…`.
  case container
  case webIdentity(WebIdentity)
  /// The first of these that the environment has: keys, a web identity, the shared file, what is
  /// offered to containers. The AWS tools look in this order, too.
  case environment
}

/// A role that is assumed with a token in a file, as Kubernetes gives it to service accounts.
package struct WebIdentity: Sendable, Equatable {
  package var roleARN: String
  /// Read each time, because its token is replaced before it expires.
  package var tokenFile: String
  /// Appears in the logs of AWS.
  package var sessionName: String
  /// URL of the token service; nil for that of AWS in the region.
  package var endpoint: String?

  package init(
    roleARN: String, tokenFile: String, sessionName: String? = nil, endpoint: String? = nil
  ) {
    self.roleARN = roleARN
    self.tokenFile = tokenFile
    self.sessionName = sessionName ?? "pubsub-etl"
    self.endpoint = endpoint
  }
}
