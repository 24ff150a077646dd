import FoundationEssentials
import Glibc
import HTTPClient
import JSON
import TestSupport

@testable import ObjectStore

/// An object store that checks signatures, started once for all tests.
final class StorePeer: Sendable {
  enum Kind: String, CaseIterable, Sendable { case seaweedfs, moto }

  private let server: PythonServer
  private let directory: TemporaryDirectory
  let description: JSONValue
  let authority: TestAuthority?

  private static let seaweedfs = Result { try StorePeer(.seaweedfs) }
  private static let moto = Result { try StorePeer(.moto) }

  static func peer(_ kind: Kind) throws -> StorePeer {
    switch kind {
    case .seaweedfs: try Self.seaweedfs.get()
    case .moto: try Self.moto.get()
    }
  }

  convenience init(_ kind: Kind, secure: Bool = false) throws {
    try self.init(kind.rawValue, secure: secure)
  }

  /// - Parameter kind: as the script names it.
  init(_ kind: String, secure: Bool = false) throws {
    self.directory = try TemporaryDirectory()
    self.authority = secure ? try TestAuthority() : nil
    let identity = try self.authority?.issue()
    let file = "\(self.directory.path)/peer.json"
    self.server = try PythonServer(
      "object_store_peer.py",
      [kind, file] + (identity.map { [$0.certificateFile, $0.keyFile] } ?? []))
    self.description = try JSONValue(
      parsing: Array(try Data(contentsOf: URL(filePath: file))))
  }

  var url: String { "http://127.0.0.1:\(self.server.port)" }

  /// Tells the store what to do, and waits until it is done.
  func tell(_ command: String) throws {
    let file = "\(self.directory.path)/peer.json.done"
    unlink(file)
    try self.server.tell(command)
    while access(file, F_OK) != 0 { usleep(10_000) }
  }

  var keys: StoreCredentials { self.credentials("access_key", "secret_key") }

  func credentials(_ id: String, _ secret: String, _ token: String? = nil) -> StoreCredentials {
    StoreCredentials(
      accessKeyID: self.description[id]?.string ?? "",
      secretAccessKey: self.description[secret]?.string ?? "",
      sessionToken: token.map { self.description[$0]?.string ?? "" })
  }

  func bucket(
    _ name: String = "exports", _ credentials: StoreCredentials? = nil, host: String = "127.0.0.1",
    pathStyle: Bool = true, http: HTTPClient = HTTPClient()
  ) throws -> Bucket {
    let endpoint = ServiceAddress(
      isSecure: self.authority != nil, host: host, port: Int(self.server.port))
    let address = try BucketAddress(bucket: name, endpoint: endpoint, usesPathStyle: pathStyle)
    return Bucket(
      address,
      credentials: CredentialProvider(
        .keys(credentials ?? self.keys), region: address.region, http: http,
        environment: { _ in nil }), http: http)
  }
}
