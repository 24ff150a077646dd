internal import Glibc

extension SimulatorError {
  /// - Parameter call: for example `open("/x")`. `errno` is read here.
  package static func system(_ call: String, errno code: Int32 = errno) -> SimulatorError {
    SimulatorError(.system, "\(call): \(String(cString: strerror(code)))")
  }
}
