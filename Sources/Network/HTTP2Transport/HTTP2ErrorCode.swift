/// Why a stream was reset or a connection left (RFC 9113 section 7). Peers may send codes that are not
/// named here.
struct HTTP2ErrorCode: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
  var rawValue: UInt32

  static let noError = Self(rawValue: 0x0)
  static let protocolError = Self(rawValue: 0x1)
  static let internalError = Self(rawValue: 0x2)
  static let flowControlError = Self(rawValue: 0x3)
  static let settingsTimeout = Self(rawValue: 0x4)
  static let streamClosed = Self(rawValue: 0x5)
  static let frameSizeError = Self(rawValue: 0x6)
  /// Nothing of the request was processed: it may be sent again.
  static let refusedStream = Self(rawValue: 0x7)
  static let cancel = Self(rawValue: 0x8)
  static let compressionError = Self(rawValue: 0x9)
  static let connectError = Self(rawValue: 0xa)
  static let enhanceYourCalm = Self(rawValue: 0xb)
  static let inadequateSecurity = Self(rawValue: 0xc)
  static let http11Required = Self(rawValue: 0xd)

  /// The name that the specification gives, or the number.
  var description: String {
    switch self {
    case .noError: "NO_ERROR"
    case .protocolError: "PROTOCOL_ERROR"
    case .internalError: "INTERNAL_ERROR"
    case .flowControlError: "FLOW_CONTROL_ERROR"
    case .settingsTimeout: "SETTINGS_TIMEOUT"
    case .streamClosed: "STREAM_CLOSED"
    case .frameSizeError: "FRAME_SIZE_ERROR"
    case .refusedStream: "REFUSED_STREAM"
    case .cancel: "CANCEL"
    case .compressionError: "COMPRESSION_ERROR"
    case .connectError: "CONNECT_ERROR"
    case .enhanceYourCalm: "ENHANCE_YOUR_CALM"
    case .inadequateSecurity: "INADEQUATE_SECURITY"
    case .http11Required: "HTTP_1_1_REQUIRED"
    default: "code \(self.rawValue)"
    }
  }
}
