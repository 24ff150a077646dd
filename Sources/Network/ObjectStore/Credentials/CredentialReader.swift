internal import Bytes
internal import Clocks
internal import DurableFiles
internal import HTTPClient
internal import JSON

/// Reads credentials from where they are, once for each call.
struct CredentialReader: Sendable {
  let region: String
  let http: HTTPClient
  let environment: @Sendable (String) -> String?
  let fileSystem: any FileSystem

  private static let maxFileBytes = 1 << 20
  /// The longest token that is accepted.
  private static let maxTokenBytes = 64 << 10
  private static let maxAnswerBytes = 1 << 16

  var wallTime: Int64 { self.http.clock.wallTime }

  func read(_ source: CredentialSource) async throws -> StoreCredentials {
    switch source {
    case .keys(let credentials):
      guard credentials.isUsable else {
        throw ObjectStoreError(
          .configuration,
          "the access key, its secret or the session token has characters that no key has")
      }
      return credentials
    case .sharedFile(let path, let profile): return try self.shared(path, profile)
    case .container: return try await self.container()
    case .webIdentity(let identity): return try await self.assumed(identity)
    case .environment: return try await self.fromEnvironment()
    }
  }

  private func variable(_ name: String) -> String? {
    self.environment(name).flatMap { $0.isEmpty ? nil : $0 }
  }

  private func fromEnvironment() async throws -> StoreCredentials {
    if let id = self.variable("AWS_ACCESS_KEY_ID") {
      guard let secret = self.variable("AWS_SECRET_ACCESS_KEY") else {
        throw ObjectStoreError(
          .configuration, "AWS_ACCESS_KEY_ID is set, but AWS_SECRET_ACCESS_KEY is not; set both")
      }
      return try await self.read(
        .keys(
          StoreCredentials(
            accessKeyID: id, secretAccessKey: secret,
            sessionToken: self.variable("AWS_SESSION_TOKEN"))))
    }
    if let file = self.variable("AWS_WEB_IDENTITY_TOKEN_FILE") {
      guard let role = self.variable("AWS_ROLE_ARN") else {
        throw ObjectStoreError(
          .configuration, "AWS_WEB_IDENTITY_TOKEN_FILE is set, but AWS_ROLE_ARN is not; set both")
      }
      return try await self.assumed(
        WebIdentity(
          roleARN: role, tokenFile: file, sessionName: self.variable("AWS_ROLE_SESSION_NAME"),
          endpoint: self.variable("AWS_ENDPOINT_URL_STS")))
    }
    let isFileNamed =
      self.variable("AWS_SHARED_CREDENTIALS_FILE") != nil || self.variable("AWS_PROFILE") != nil
    if try isFileNamed || self.sharedPath(nil).map(self.exists) == true {
      return try self.shared(nil, nil)
    }
    if self.isInContainer { return try await self.container() }
    throw ObjectStoreError(
      .configuration,
      "the environment has no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or "
        + "AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN, or make ~/.aws/credentials; "
        + "AWS_CONTAINER_CREDENTIALS_FULL_URI and _RELATIVE_URI are not set either")
  }

  // MARK: Files

  private func exists(_ path: String) throws -> Bool { try self.fileSystem.size(of: path) != nil }

  private func sharedPath(_ path: String?) -> String? {
    path ?? self.variable("AWS_SHARED_CREDENTIALS_FILE")
      ?? self.variable("HOME").map { "\($0)/.aws/credentials" }
  }

  private func shared(_ path: String?, _ profile: String?) throws -> StoreCredentials {
    guard let path = self.sharedPath(path) else {
      throw ObjectStoreError(
        .configuration,
        "HOME is not set, so there is no ~/.aws/credentials; set AWS_SHARED_CREDENTIALS_FILE")
    }
    let profile = profile ?? self.variable("AWS_PROFILE") ?? "default"
    let file = SharedCredentialsFile(try self.text(path, maxBytes: Self.maxFileBytes))
    guard let keys = file.profiles[profile] else {
      throw ObjectStoreError(
        .configuration, "\(path) has no profile [\(profile.shown(upTo: 80))]; check the profile")
    }
    guard let id = keys["aws_access_key_id"], let secret = keys["aws_secret_access_key"] else {
      throw ObjectStoreError(
        .configuration,
        "\(path): the profile [\(profile.shown(upTo: 80))] lacks aws_access_key_id or "
          + "aws_secret_access_key; other kinds of profiles are not supported")
    }
    let credentials = StoreCredentials(
      accessKeyID: id, secretAccessKey: secret, sessionToken: keys["aws_session_token"])
    guard credentials.isUsable else {
      throw ObjectStoreError(
        .configuration,
        "\(path): a value of the profile [\(profile.shown(upTo: 80))] has characters that no key has"
      )
    }
    return credentials
  }

  private func text(_ path: String, maxBytes: Int) throws(ObjectStoreError) -> String {
    let bytes: [UInt8]
    do throws(FileSystemError) {
      let file = try OpenFile(path, [], on: self.fileSystem)
      bytes = try file.content(byteCount: maxBytes + 1)
    } catch {
      throw ObjectStoreError(.configuration, "credentials: \(error)")
    }
    guard bytes.count <= maxBytes else {
      throw ObjectStoreError(
        .configuration, "credentials: \(path) has more than \(maxBytes) bytes; check the path")
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  private func token(_ path: String) throws(ObjectStoreError) -> String {
    let text = try self.text(path, maxBytes: Self.maxTokenBytes)
    let token = text.split(whereSeparator: \.isWhitespace)
    guard token.count == 1, token[0].utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
      throw ObjectStoreError(
        .configuration, "credentials: \(path) does not contain one token; check the path")
    }
    return String(token[0])
  }

  // MARK: Containers

  /// Where Amazon ECS and Amazon EKS offer credentials, without TLS, on this machine.
  private static let containerHosts = ["169.254.170.2", "169.254.170.23", "[fd00:ec2::23]"]

  private var isInContainer: Bool {
    self.variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") != nil
      || self.variable("AWS_CONTAINER_CREDENTIALS_FULL_URI") != nil
  }

  private func containerURL() throws(ObjectStoreError) -> String {
    if let path = self.variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") {
      guard path.hasPrefix("/") else {
        throw ObjectStoreError(
          .configuration, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI does not begin with '/'")
      }
      return "http://\(Self.containerHosts[0])\(path)"
    }
    guard let url = self.variable("AWS_CONTAINER_CREDENTIALS_FULL_URI") else {
      throw ObjectStoreError(
        .configuration,
        "neither AWS_CONTAINER_CREDENTIALS_FULL_URI nor AWS_CONTAINER_CREDENTIALS_RELATIVE_URI is set"
      )
    }
    return url
  }

  private func container() async throws -> StoreCredentials {
    let url = try self.containerURL()
    var token = self.variable("AWS_CONTAINER_AUTHORIZATION_TOKEN")
    if let file = self.variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE") {
      token = try self.token(file)
    }
    var request = HTTPRequest(.get, url, headers: token.map { [("Authorization", $0)] } ?? [])
    // The token is a secret, so plain http goes to hosts that are known to be this machine only.
    request.allowsPlaintext = Self.containerHosts.contains { host in
      ["/", ":", "?"].contains { url.hasPrefix("http://\(host)\($0)") } || url == "http://\(host)"
    }
    let response = try await self.answer(request)
    let json = try? JSONValue(parsing: response.body)
    guard response.status == 200 else {
      let said = [json?["Code"] ?? json?["code"], json?["Message"] ?? json?["message"]]
        .compactMap { self.shown($0?.string, without: token, upTo: 200) }
      throw ObjectStoreError(
        response.status == 429 || response.status >= 500 ? .retry : .denied,
        "credentials: \(request): HTTP \(response.status)"
          + (said.isEmpty ? "" : ", \(said.joined(separator: ": "))"), status: response.status)
    }
    return try self.credentials(
      id: json?["AccessKeyId"]?.string, secret: json?["SecretAccessKey"]?.string,
      token: json?["Token"]?.string, expiration: json?["Expiration"]?.string, of: request)
  }

  // MARK: Web identities

  /// Source: AssumeRoleWithWebIdentity in the API reference of AWS Security Token Service. The request
  /// is not signed.
  private func assumed(_ identity: WebIdentity) async throws -> StoreCredentials {
    let token = try self.token(identity.tokenFile)
    let suffix = self.region.hasPrefix("cn-") ? ".cn" : ""
    let endpoint = identity.endpoint ?? "https://sts.\(self.region).amazonaws.com\(suffix)"
    let request = HTTPRequest.form(
      endpoint.hasSuffix("/") ? endpoint : "\(endpoint)/",
      fields: [
        ("Action", "AssumeRoleWithWebIdentity"), ("Version", "2011-06-15"),
        ("RoleArn", identity.roleARN), ("RoleSessionName", identity.sessionName),
        ("WebIdentityToken", token),
      ])
    let response = try await self.answer(request)
    guard response.status == 200 else {
      throw ObjectStoreError(
        response, body: response.body,
        to: "credentials: \(request), role \(identity.roleARN.shown(upTo: 200))", secrets: [token],
        wallTime: self.wallTime)
    }
    let document = try? XMLElement(parsing: response.body)
    let values = document?.child("AssumeRoleWithWebIdentityResult")?.child("Credentials")
    return try self.credentials(
      id: values?["AccessKeyId"], secret: values?["SecretAccessKey"],
      token: values?["SessionToken"], expiration: values?["Expiration"], of: request)
  }

  // MARK: Answers

  private func answer(_ request: HTTPRequest) async throws -> HTTPResponse {
    do {
      return try await self.http.send(request, maxBodyBytes: Self.maxAnswerBytes)
    } catch let error as HTTPError {
      var error = ObjectStoreError(error)
      error.message = "credentials: \(error.message)"
      throw error
    }
  }

  /// Temporary credentials, which have all of these.
  private func credentials(
    id: String?, secret: String?, token: String?, expiration: String?, of request: HTTPRequest
  ) throws(ObjectStoreError) -> StoreCredentials {
    guard let id, let secret, let token, let expiration,
      let expiresAt = Array(expiration.utf8).withUnsafeBytes(Self.time)
    else {
      throw ObjectStoreError(
        .retry,
        "credentials: \(request): the response does not have AccessKeyId, SecretAccessKey, token and a "
          + "time of expiration")
    }
    let credentials = StoreCredentials(
      accessKeyID: id, secretAccessKey: secret, sessionToken: token, expiresAt: expiresAt)
    guard credentials.isUsable, expiresAt > self.wallTime else {
      throw ObjectStoreError(
        .retry,
        "credentials: \(request): the response has credentials that have expired or cannot be sent; "
          + "check this machine's clock")
    }
    return credentials
  }

  /// ISO 8601 with any fraction of a second, in milliseconds since 1970.
  private static func time(_ text: UnsafeRawBufferPointer) -> Int64? {
    guard let day = DateText.leadingDay(text), DateText.has(text, 10, "T"),
      let clock = DateText.clock(text, 11), let offset = DateText.zone(text, clock.end)
    else { return nil }
    return day * 86_400_000 + (clock.seconds - offset) * 1000
  }

  private func shown(_ text: String?, without secret: String?, upTo count: Int) -> String? {
    guard let text, let secret, !secret.isEmpty else { return text?.shown(upTo: count) }
    return text.replacing(secret, with: "<redacted>").shown(upTo: count)
  }
}
