import Bytes
import HTTPClient
import JSON

/// Kinds of values that occur in several parts of a pipeline file.
extension Kind<String> {
  /// A name that goes into file names: letters, digits, `-`, `_` and `.`, at most 64, the first a
  /// letter or digit.
  static var identifier: Self {
    Self.string(.reference("identifier")).checked { Self.identifierMistake($0) }
  }

  /// Why a name cannot be an identifier; nil if it can.
  static func identifierMistake(_ name: String) -> String? {
    let isValid =
      name.utf8.count <= 64 && name.utf8.first?.isAlphanumeric == true
      && name.utf8.allSatisfy { $0.isWordCharacter || "-.".utf8.contains($0) }
    return isValid
      ? nil
      : "expected a name of 1 to 64 letters, digits, '-', '_' and '.', beginning with a letter or digit"
  }

  /// An absolute path, from one that may be relative to the base.
  static var path: Self {
    Self.string(.reference("path")).map { reader, name, path in
      guard !path.isEmpty else {
        reader.report(name, "expected a path, found an empty text")
        return nil
      }
      if let mistake = FilePath.mistake(in: path) {
        let hint = path.utf8.contains(0) ? "" : ", or begin it with \"${HOME}/\""
        reader.report(name, mistake + hint)
        return nil
      }
      return FilePath.resolve(path, base: reader.configuration.base)
    }
  }

  /// The path of a file with a secret, which no one else should be able to read.
  static var secretFile: Self {
    Self.path.map { reader, _, path in
      reader.configuration.secretFiles.insert(path)
      return path
    }
  }

  /// The path of a file that a library reads. Empty means unset, so that `${PUBSUB_CA_FILE:-}` can
  /// be used in every pipeline.
  static var readableFile: Self {
    Self(.text()) { reader, name, _ in
      guard let text = reader.string(name), !text.isEmpty,
        let file = Self.path.read(reader, name, false)
      else { return nil }
      if !FilePath.isReadable(file) { reader.report(name, FilePath.unreadable(file)) }
      reader.configuration.secretFiles.insert(input: file)
      return file
    }
  }

  /// A value that others must not read, so that a variable provides it.
  static var variable: Self {
    Self.string(.reference("variable")).checked { $0.isEmpty ? "must not be empty" : nil }
  }
}

extension Kind<Secret> {
  static var secret: Self { Kind<String>.text.map { Secret($2) } }
}

extension Kind<ServiceAddress> {
  /// - Parameter advice: says why a text is not the URL that is meant.
  static func address(advice: @escaping (JSONReader, String) -> String? = { _, _ in nil }) -> Self {
    let text = Kind<String>.text.map { reader, name, text -> String? in
      guard let advice = advice(reader, text) else { return text }
      reader.report(name, advice)
      return nil
    }
    return text.parsed(write: { .string($0.url) }, { try ServiceAddress(parsing: $0) })
  }
}

extension FilePath {
  /// For the key that names such a file.
  static func unreadable(_ file: String) -> String {
    "the file \(file) does not exist, cannot be read, or is not a regular file"
  }
}

extension JSONReader {
  /// What reads the document as a whole.
  var configuration: ConfigurationReader {
    guard let configuration = self.context as? ConfigurationReader else {
      preconditionFailure("\(self.path) is read without a ConfigurationReader")
    }
    return configuration
  }
}
