import FoundationEssentials
import Glibc

/// A directory of its own for a test, removed with everything in it when the object goes.
package final class TemporaryDirectory: Sendable {
  package let path: String

  package init() throws {
    var template = Array("/tmp/pubsub-etl-test-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw TemporaryDirectoryError(code: errno) }
    self.path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  deinit { try? FileManager.default.removeItem(atPath: self.path) }
}

package struct TemporaryDirectoryError: Error {
  package var code: Int32
}
