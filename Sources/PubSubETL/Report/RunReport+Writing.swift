import Glibc
import JSON

extension RunReport {
  struct WriteError: Error, CustomStringConvertible {
    var description: String
  }

  /// Writes the report where `--report` says.
  ///
  /// - Parameter destination: `-` for standard output, else a file, relative to the working
  ///   directory. A reader of the file sees the old report or the new one, never half of one.
  func write(to destination: String) throws(WriteError) {
    let text = self.json.text(.pretty) + "\n"
    guard destination != "-" else {
      guard StandardStream.output.write(text) else {
        throw WriteError(description: "the report cannot be written to standard output")
      }
      return
    }
    let file = FilePath.resolve(destination, base: FilePath.workingDirectory)
    let temporary = "\(file).\(getpid()).tmp"
    let failed = Self.store(text, in: temporary) ?? (rename(temporary, file) == 0 ? nil : errno)
    guard let failed else { return }
    unlink(temporary)
    throw WriteError(
      description: "the report cannot be written to \(file): \(String(cString: strerror(failed)))")
  }

  /// The error number of what failed; nil after a success.
  private static func store(_ text: String, in file: String) -> Int32? {
    let descriptor = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o640)
    guard descriptor >= 0 else { return errno }
    defer { close(descriptor) }
    var text = text
    return text.withUTF8 { bytes in
      var rest = UnsafeRawBufferPointer(bytes)
      while !rest.isEmpty {
        let count = Glibc.write(descriptor, rest.baseAddress, rest.count)
        if count < 0 {
          let code = errno
          if code == EINTR { continue }
          return code
        }
        rest = UnsafeRawBufferPointer(rebasing: rest[count...])
      }
      return nil
    }
  }
}
