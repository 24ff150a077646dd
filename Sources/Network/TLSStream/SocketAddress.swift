package import EventLoop
import Glibc

/// An IPv4 or IPv6 address with its port.
package struct SocketAddress: Sendable, CustomStringConvertible {
  private var storage: sockaddr_storage
  private var length: socklen_t

  init(storage: sockaddr_storage, length: socklen_t) {
    self.storage = storage
    self.length = length
  }

  /// `AF_INET` or `AF_INET6`.
  package var family: Int32 { Int32(self.storage.ss_family) }

  package var port: UInt16 {
    var storage = self.storage
    return withUnsafeBytes(of: &storage) { bytes in
      // Both address structures have the port in network order behind the two-byte family.
      UInt16(bytes[2]) << 8 | UInt16(bytes[3])
    }
  }

  /// `127.0.0.1:7443` or `[::1]:7443`.
  package var description: String {
    let host = self.host
    return self.family == AF_INET6 ? "[\(host)]:\(self.port)" : "\(host):\(self.port)"
  }

  /// The numeric address without its port.
  package var host: String {
    var text = [CChar](repeating: 0, count: Int(NI_MAXHOST))
    let code = self.withPointer { address, length in
      getnameinfo(address, length, &text, socklen_t(text.count), nil, 0, NI_NUMERICHOST)
    }
    guard code == 0 else { return "?" }
    return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  func withPointer<Result>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Result) -> Result {
    withUnsafePointer(to: self.storage) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, self.length) }
    }
  }

  /// The addresses of `host`, in the order in which the system wants them tried. Blocks, possibly
  /// for many seconds: not for a thread that serves others; see `resolve(host:port:on:with:_:)`.
  /// - Throws: `addressNotFound`.
  package static func resolve(host: String, port: UInt16) throws(TLSError) -> [SocketAddress] {
    try Self.resolve(host: host, port: port, flags: AI_ADDRCONFIG)
  }

  /// Whether a host is an address in numbers, `127.0.0.1` or `::1`, which needs no lookup.
  package static func isNumeric(host: String) -> Bool {
    var address = in6_addr()
    return inet_pton(AF_INET, host, &address) == 1 || inet_pton(AF_INET6, host, &address) == 1
  }

  static func resolve(host: String, port: UInt16, flags: Int32) throws(TLSError) -> [SocketAddress]
  {
    var hints = addrinfo()
    hints.ai_family = AF_UNSPEC
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    hints.ai_flags = flags | AI_NUMERICSERV
    var list: UnsafeMutablePointer<addrinfo>?
    var code = getaddrinfo(host, String(port), &hints, &list)
    if code != 0, flags & AI_ADDRCONFIG != 0 {
      // A host with loopback interfaces only has no configured family: ask without the filter.
      hints.ai_flags &= ~AI_ADDRCONFIG
      code = getaddrinfo(host, String(port), &hints, &list)
    }
    guard code == 0 else {
      let reason =
        code == EAI_SYSTEM ? SystemCallError.text(of: errno) : String(cString: gai_strerror(code))
      throw TLSError(.addressNotFound, "host '\(host)' could not be resolved: \(reason)")
    }
    defer { freeaddrinfo(list) }
    var addresses: [SocketAddress] = []
    var next = list
    while let entry = next {
      next = entry.pointee.ai_next
      guard let address = entry.pointee.ai_addr else { continue }
      addresses.append(SocketAddress(copying: address, length: entry.pointee.ai_addrlen))
    }
    guard !addresses.isEmpty else {
      throw TLSError(.addressNotFound, "host '\(host)' could not be resolved")
    }
    return addresses
  }

  init(copying address: UnsafePointer<sockaddr>, length: socklen_t) {
    var storage = sockaddr_storage()
    let count = min(Int(length), MemoryLayout<sockaddr_storage>.size)
    withUnsafeMutableBytes(of: &storage) { target in
      target.copyMemory(from: UnsafeRawBufferPointer(start: address, count: count))
    }
    self.init(storage: storage, length: socklen_t(count))
  }

  /// Whether `host` is an address written in numbers, for which TLS sends no server name
  /// (RFC 6066 section 3).
  package static func isNumeric(_ host: String) -> Bool {
    var buffer = in6_addr()
    return inet_pton(AF_INET, host, &buffer) == 1 || inet_pton(AF_INET6, host, &buffer) == 1
  }
}

extension SocketAddress {
  /// Name service: blocks until it knows the addresses of a host, in the order to try them in.
  package typealias Resolver =
    @Sendable (_ host: String, _ port: UInt16) throws(TLSError) -> [SocketAddress]

  /// Resolves `host` on a thread made for it and calls `completion` on `loop`.
  package static func resolve(
    host: String, port: UInt16, on loop: EventLoop, with resolver: @escaping Resolver,
    _ completion: @escaping @Sendable (Result<[SocketAddress], TLSError>) -> Void
  ) {
    do {
      try Thread.detach(name: "resolver") {
        let result: Result<[SocketAddress], TLSError>
        do throws(TLSError) {
          result = .success(try resolver(host, port))
        } catch {
          result = .failure(error)
        }
        loop.execute { completion(result) }
      }
    } catch {
      loop.execute { completion(.failure(TLSError(.system, "\(error)"))) }
    }
  }
}
