import JSON
import TLSStream

/// What goes for every connection to the org: whom to trust, who we are, through which proxy.
extension ConfigurationReader {
  func tls(_ reader: JSONReader) -> TLSConfiguration {
    var tls = TLSConfiguration()
    tls.caFile = self.readableFile(reader, "ca_file")
    let certificate = self.readableFile(reader, "certificate_file")
    let key = self.readableFile(reader, "key_file")
    reader.finish()
    if key != nil, certificate == nil {
      reader.report("key_file", "also needs certificate_file")
    }
    tls.identity = certificate.map {
      TLSConfiguration.Identity(certificateFile: $0, keyFile: key ?? $0)
    }
    if let file = tls.caFile { self.check(caFile: file, reader) }
    if let identity = tls.identity {
      self.secretFiles.insert(identity.keyFile)
      self.check(identity, reader)
    }
    return tls
  }

  /// Reports a file without certificates, which only a connection would meet otherwise.
  private func check(caFile: String, _ reader: JSONReader) {
    guard FilePath.isReadable(caFile) else { return }
    do throws(TLSError) {
      _ = try TLSContext.client(trust: .file(caFile))
    } catch {
      reader.report("ca_file", error.message)
    }
  }

  /// Reports what only a connection would meet otherwise: no PEM, another key, a passphrase.
  private func check(_ identity: TLSConfiguration.Identity, _ reader: JSONReader) {
    guard FilePath.isReadable(identity.certificateFile), FilePath.isReadable(identity.keyFile)
    else { return }
    do throws(TLSError) {
      _ = try TLSContext.server(
        identity: .files(certificateChain: identity.certificateFile, privateKey: identity.keyFile))
    } catch {
      reader.report("certificate_file", error.message)
    }
  }

  /// Empty means unset, so that `${PUBSUB_CA_FILE:-}` can be used in every pipeline.
  private func readableFile(_ reader: JSONReader, _ key: String) -> String? {
    guard let text = reader.string(key), !text.isEmpty, let file = self.path(reader, key) else {
      return nil
    }
    if !FilePath.isReadable(file) {
      reader.report(
        key, "the file \(file) does not exist, cannot be read, or is not a regular file")
    }
    self.secretFiles.insert(input: file)
    return file
  }

  /// - Parameter reader: of the org; its member `proxy` may be missing.
  func proxy(in reader: JSONReader) -> ProxySettings {
    enum Word: String, CaseIterable { case environment, none }
    switch reader.any("proxy")?.content {
    case nil: return self.environmentProxy(reader)
    case .string(let word):
      switch Word(rawValue: word) {
      case .environment: return self.environmentProxy(reader)
      case .some(.none): return .none
      case nil:
        // Not quoted: it may well be an address with a password.
        reader.report(
          "proxy",
          "expected a word, \"environment\" or \"none\"; the address of a proxy is written as "
            + "{\"url\": \"http://HOST:PORT\"}")
        return .none
      }
    case .object:
      guard let proxy = reader.object("proxy") else { return .none }
      let url = proxy.string("url", required: true)
      let exceptions = ProxyExceptions(parsing: proxy.string("no_proxy") ?? "")
      proxy.finish()
      guard let url else { return .none }
      // As with files of TLS, so that `${PROXY:-}` can be used in every pipeline.
      if url.isEmpty { return self.environmentProxy(reader) }
      do throws(ProxyAddress.ParseError) {
        return ProxySettings(try ProxyAddress(parsing: url), exceptions: exceptions)
      } catch {
        proxy.report("url", error.description)
        return .none
      }
    default:
      reader.report(
        "proxy",
        "expected \"environment\", \"none\" or {\"url\": \"http://HOST:PORT\"}, found "
          + (reader.any("proxy")?.kind ?? "nothing"))
      return .none
    }
  }

  private func environmentProxy(_ reader: JSONReader) -> ProxySettings {
    do throws(ProxySettings.EnvironmentError) {
      return try ProxySettings(self.environment)
    } catch {
      reader.report(
        "proxy",
        "the environment variable \(error.variable): \(error.reason); correct it, or set \"proxy\" "
          + "to \"none\" or a proxy of its own")
      return .none
    }
  }
}
