import JSON
import TLSStream

/// How the two ends of a connection prove who they are (`tls`). Paths are absolute.
struct TLSConfiguration: KeyedObject, Sendable, Equatable {
  struct Identity: Sendable, Equatable {
    var certificateFile: String
    var keyFile: String
  }

  /// PEM file with the certificates to trust; nil for those of the system.
  var caFile: String?
  private var certificateFile: String?
  private var keyFile: String?

  /// Shown to servers that ask for it.
  var identity: Identity? {
    self.certificateFile.map { Identity(certificateFile: $0, keyFile: self.keyFile ?? $0) }
  }

  static var keys: [Key<Self>] {
    [
      .key(
        "ca_file", \.caFile, .readableFile,
        "PEM file of the only certificates to trust; empty means unset.",
        example: "ca.pem"),
      .key(
        "certificate_file", \.certificateFile, .readableFile,
        "PEM file of a client certificate and its chain; empty means unset.",
        example: "client.pem"),
      .key(
        "key_file", \.keyFile, .readableFile,
        "PEM file of its key, without passphrase, if not in certificate_file; empty means unset.",
        example: "client.key"),
    ]
  }

  /// Reports what only a connection would meet otherwise: a file without certificates, no PEM, another
  /// key, a passphrase.
  func check(_ reader: JSONReader) {
    if self.keyFile != nil, self.certificateFile == nil {
      reader.report("key_file", "also needs certificate_file")
    }
    do throws(TLSError) {
      if let file = self.caFile, FilePath.isReadable(file) {
        _ = try TLSContext.client(trust: .file(file))
      }
    } catch {
      reader.report("ca_file", error.message)
    }
    guard let identity else { return }
    reader.configuration.secretFiles.insert(identity.keyFile)
    guard FilePath.isReadable(identity.certificateFile), FilePath.isReadable(identity.keyFile)
    else { return }
    do throws(TLSError) {
      _ = try TLSContext.server(
        identity: .files(certificateChain: identity.certificateFile, privateKey: identity.keyFile))
    } catch {
      reader.report("certificate_file", error.message)
    }
  }
}
