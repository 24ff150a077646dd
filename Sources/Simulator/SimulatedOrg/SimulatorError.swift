internal import Glibc

/// A failure of the simulator itself (files, sockets, certificates), as opposed to what it answers to clients.
package struct SimulatorError: Error, Sendable, CustomStringConvertible {
  package struct Code: Hashable, Sendable {
    private enum Value { case system, configuration, tls }
    private var value: Value
    private init(_ value: Value) { self.value = value }
    /// A call of the operating system failed.
    package static var system: Self { Self(.system) }
    /// The options contradict each other or name something that does not exist.
    package static var configuration: Self { Self(.configuration) }
    /// A key, certificate or TLS context could not be made.
    package static var tls: Self { Self(.tls) }
  }

  package var code: Code
  /// What failed, on which thing, and what to do.
  package var message: String

  package init(_ code: Code, _ message: String) {
    self.code = code
    self.message = message
  }

  package var description: String { self.message }
}

extension SimulatorError {
  /// - Parameter call: for example `open("/x")`. `errno` is read here.
  package static func system(_ call: String, errno code: Int32 = errno) -> SimulatorError {
    SimulatorError(.system, "\(call): \(String(cString: strerror(code)))")
  }
}
