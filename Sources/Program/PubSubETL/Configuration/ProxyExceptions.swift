import Glibc

/// Hosts that are reached without the proxy, as `no_proxy` lists them: separated by commas or
/// blanks, `*` for all; a name stands for itself and what is below it, with or without a dot in
/// front; an address for itself, or with `/bits` for its network; each may have a `:port`.
struct ProxyExceptions: Sendable, Equatable {
  private enum Host: Sendable, Equatable {
    case all
    /// Without a dot in front.
    case name(String)
    case network([UInt8], bits: Int)
  }

  private struct Entry: Sendable, Equatable {
    var host: Host
    var port: Int?
  }

  private var entries: [Entry] = []

  /// What cannot be read as one of the above stands for a name that no host has.
  init(parsing text: String) {
    for item in text.split(whereSeparator: { $0 == "," || $0.isWhitespace }) {
      self.entries.append(Self.entry(item))
    }
  }

  /// - Parameter host: a name or an address, IPv6 without brackets.
  func contains(host: String, port: Int) -> Bool {
    let name = Self.name(host[...])
    let address = Self.address(host[...])
    return self.entries.contains { entry in
      guard entry.port == nil || entry.port == port else { return false }
      switch entry.host {
      case .all: return true
      case .name(let suffix):
        return address == nil && (name == suffix || name.hasSuffix(".\(suffix)"))
      case .network(let network, let bits):
        return address.map { Self.isEqual($0, network, bits: bits) } ?? false
      }
    }
  }

  private static func entry(_ item: Substring) -> Entry {
    if item == "*" { return Entry(host: .all) }
    if let network = Self.network(item) { return Entry(host: network) }
    if let colon = item.lastIndex(of: ":"), let port = Int(item[item.index(after: colon)...]) {
      let host = item[..<colon]
      return Entry(host: Self.network(host) ?? .name(Self.name(host)), port: port)
    }
    return Entry(host: .name(Self.name(item)))
  }

  private static func network(_ text: Substring) -> Host? {
    let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
    var host = parts[0]
    if host.hasPrefix("["), host.hasSuffix("]") { host = host.dropFirst().dropLast() }
    guard let address = Self.address(host) else { return nil }
    guard parts.count == 2 else { return .network(address, bits: address.count * 8) }
    guard let bits = Int(parts[1]), (0...address.count * 8).contains(bits) else { return nil }
    return .network(address, bits: bits)
  }

  /// In lower case, without a dot in front or behind.
  private static func name(_ text: Substring) -> String {
    var text = text.lowercased()[...]
    if text.hasPrefix("*.") { text = text.dropFirst() }
    if text.hasPrefix(".") { text = text.dropFirst() }
    if text.hasSuffix(".") { text = text.dropLast() }
    return String(text)
  }

  /// Four or sixteen bytes in network order.
  private static func address(_ text: Substring) -> [UInt8]? {
    var ipv4 = in_addr()
    if inet_pton(AF_INET, String(text), &ipv4) == 1 { return withUnsafeBytes(of: ipv4, Array.init) }
    var ipv6 = in6_addr()
    if inet_pton(AF_INET6, String(text), &ipv6) == 1 {
      return withUnsafeBytes(of: ipv6, Array.init)
    }
    return nil
  }

  private static func isEqual(_ left: [UInt8], _ right: [UInt8], bits: Int) -> Bool {
    guard left.count == right.count else { return false }
    let (whole, rest) = bits.quotientAndRemainder(dividingBy: 8)
    guard left.prefix(whole) == right.prefix(whole) else { return false }
    guard rest > 0 else { return true }
    return left[whole] >> (8 - rest) == right[whole] >> (8 - rest)
  }
}
