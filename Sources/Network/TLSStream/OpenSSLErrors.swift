import COpenSSL

/// The error queue of the calling thread. It is cleared before and drained after every group of
/// calls, in one synchronous function: an `await` in between might resume on another thread.
enum OpenSSLErrors {
  /// Empties the queue; the reasons oldest first, or a stand-in when there is none.
  static func drain() -> String {
    var reasons: [String] = []
    while true {
      let code = ERR_get_error()
      if code == 0 { break }
      if let reason = ERR_reason_error_string(code) {
        reasons.append(String(cString: reason))
      } else {
        reasons.append("OpenSSL error \(String(code, radix: 16))")
      }
    }
    return reasons.isEmpty ? "no reason given" : reasons.joined(separator: ", ")
  }
}
