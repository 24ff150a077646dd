import Bytes
internal import CSystem
import EventLoop
import Glibc
import JSON

/// The secrets that this process knows, to be taken out of every text that leaves it: those of the
/// configuration, wherever they come from, and tokens that logins give.
///
/// No message of ours quotes one. But services, databases and libraries repeat what they were sent,
/// and a URL that is taken apart at the wrong place puts a piece of a password where a host name is
/// expected.
final class SecretMask: Sendable {
  /// In UTF-8, the longest first, so that a secret inside another leaves nothing of that one.
  ///
  /// Bytes are compared, not characters: a combining character behind a secret makes another character
  /// of its last one.
  private let texts = Lock<[[UInt8]]>([])

  /// The commands of the pipeline whose secrets these are: its messages pass here too.
  let commands = Lock<PrintedCommands?>(nil)

  static let replacement = "<redacted>"

  /// Shorter ones occur in any text by chance, which would only show where.
  private static let shortest = 4

  /// A shorter one is hidden only as a word of its own: "word" is not a part of "password".
  private static let shortestWithinWords = 8

  /// A short password may equal the name of a folder; a longer one hardly does.
  private static let longestInPaths = 15

  /// Words of our own messages. A gap in place of one would reveal the secret.
  private static let ownWords = Set(
    ["database", "host", "password", "port", "postgres", "postgresql", "pubsub-etl", "user"]
      .map { Array($0.utf8) })

  func add(_ secret: String) {
    // As a peer may quote it, which was sent it in a URL or in JSON.
    let quoted = JSONValue(.string(secret)).text().dropFirst().dropLast()
    let forms = [secret, PercentEncoding.encoded(secret), String(quoted)].map { Array($0.utf8) }
    self.texts.withLock { texts in
      for form in forms where form.count >= Self.shortest && !texts.contains(form) {
        texts.append(form)
      }
      texts.sort { $0.count > $1.count }
    }
  }

  /// Adds the passwords of a URL or of `key=value` pairs: as whoever parses it reads them, and all
  /// pieces into which it may fall.
  func add(passwordsOf url: String) {
    var pieces = SinkRegistry.passwords(in: url)
    var known: [String] = []
    if let scheme = url.firstRange(of: "://"), let at = url.lastIndex(of: "@"),
      scheme.upperBound <= at
    {
      let user = url[scheme.upperBound..<at].split(
        separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
      known.append(String(user[0]))
      known.append(String(url[url.index(after: at)...].prefix { !":/?#".contains($0) }))
      if user.count == 2 {
        pieces.append(String(user[1]))
        pieces += user[1].split(whereSeparator: { "@:/?#&=".contains($0) }).map(String.init)
        // A proxy is sent both in one.
        self.add(Array("\(user[0]):\(user[1])".utf8).base64)
      }
    }
    var rest = url[...]
    while let key = rest.firstRange(of: "password=") {
      rest = rest[key.upperBound...]
      pieces.append(String(rest.prefix { !"& '".contains($0) }))
    }
    for piece in pieces {
      let decoded = String(decoding: PercentEncoding.decoded(piece).bytes, as: UTF8.self)
      // A text that is also the user's or the host's name is not secret.
      for text in [piece, decoded] where !known.contains(text) { self.add(text) }
    }
  }

  /// Adds what a document holds under the keys of secrets and of URLs.
  func add(secretsOf document: JSONValue) {
    for element in document.array ?? [] { self.add(secretsOf: element) }
    for member in document.members ?? [] {
      if let text = member.value.string {
        if Secret.urlKeys.contains(member.name) {
          self.add(passwordsOf: text)
        } else if Secret.keys.contains(member.name) {
          self.add(text)
        }
      } else {
        self.add(secretsOf: member.value)
      }
    }
  }

  /// Adds what proxies and sinks are reached with when the pipeline file does not say.
  func add(secretsOf environment: Environment) {
    for name in ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"] {
      if let url = environment.variable(name) { self.add(passwordsOf: url) }
    }
    for secret in SinkRegistry.secrets(in: environment) { self.add(secret) }
  }

  /// A message with complete commands and without secrets.
  func message(_ text: String) -> String {
    self.redacted(self.commands.withLock { $0 }?.completing(text) ?? text)
  }

  func redacted(_ text: String) -> String {
    var text = text
    let secrets = self.texts.withLock { $0 }
    // Whole secrets first: one may begin as another does.
    for isWhole in [true, false] {
      for secret in secrets {
        let count = isWhole ? secret.count : Self.telling(secret.count)
        guard isWhole || count < secret.count else { continue }
        let replaced = text.withUTF8 {
          Self.replacing(secret, from: count, in: UnsafeRawBufferPointer($0))
        }
        if let replaced { text = replaced }
      }
    }
    return text
  }

  /// How much of a secret's beginning counts as the secret: wherever a text was cut, it may have been
  /// inside one. Of an access token, half is beyond the ID of the org, with which it begins.
  private static func telling(_ count: Int) -> Int { max(Self.shortestBeginning, count / 2) }

  private static let shortestBeginning = 8

  /// - Parameter count: so many bytes of the secret at least, from its beginning.
  /// - Returns: nil if the text does not contain them.
  private static func replacing(
    _ secret: [UInt8], from count: Int, in text: UnsafeRawBufferPointer
  ) -> String? {
    var result: [UInt8] = []
    var (copied, from) = (0, 0)
    while let start = Self.offset(of: secret, count: count, in: text, from: from) {
      var end = start + count
      while end < text.count, end - start < secret.count, text[end] == secret[end - start] {
        end += 1
      }
      from = end
      guard !Self.isByChance(start..<end, in: text) else { continue }
      result += text[copied..<start]
      result += Self.replacement.utf8
      copied = end
    }
    guard copied > 0 else { return nil }
    result += text[copied...]
    return String(decoding: result, as: UTF8.self)
  }

  /// Whether bytes that equal a secret are part of a longer word or of a path, or a word of ours.
  private static func isByChance(_ range: Range<Int>, in text: UnsafeRawBufferPointer) -> Bool {
    guard range.count <= Self.longestInPaths else { return false }
    func end(_ end: Int, while isPart: (UInt8) -> Bool) -> Int {
      text[end...].firstIndex { !isPart($0) } ?? text.count
    }
    func start(_ start: Int, while isPart: (UInt8) -> Bool) -> Int {
      text[..<start].lastIndex { !isPart($0) }.map { $0 + 1 } ?? 0
    }
    let word =
      start(range.lowerBound, while: Self.isWord)..<end(range.upperBound, while: Self.isWord)
    if range.count < Self.shortestWithinWords, word != range { return true }
    if Self.ownWords.contains(Array(text[word])) { return true }
    let path = start(word.lowerBound, while: Self.isPath)..<end(word.upperBound, while: Self.isPath)
    let around = [
      text[path.lowerBound..<range.lowerBound], text[range.upperBound..<path.upperBound],
    ]
    guard around.contains(where: { $0.contains(UInt8(ascii: "/")) }) else { return false }
    // A piece of a URL is no path: its scheme precedes it, or a host or an escape follows.
    let isURL = path.lowerBound > 0 && text[path.lowerBound - 1] == UInt8(ascii: ":")
    let isCut = path.upperBound < text.count && "@%".utf8.contains(text[path.upperBound])
    return !isURL && !isCut
  }

  private static func isWord(_ byte: UInt8) -> Bool {
    byte.isWordCharacter || byte == UInt8(ascii: "-")
  }

  private static func isPath(_ byte: UInt8) -> Bool {
    Self.isWord(byte) || byte == UInt8(ascii: "/") || byte == UInt8(ascii: ".") || byte >= 0x80
  }

  private static func offset(
    of secret: [UInt8], count: Int, in text: UnsafeRawBufferPointer, from start: Int
  ) -> Int? {
    guard let base = text.baseAddress else { return nil }
    let found = c_memmem(base + start, text.count - start, secret, count)
    return found.map { $0 - base }
  }

  /// Unicode scalars of the longest secret, at most.
  var longestCount: Int { self.texts.withLock { $0.first?.count ?? 0 } }

  /// With the secrets taken out of all texts; names of members stay.
  func redacted(_ value: JSONValue) -> JSONValue {
    switch value.content {
    case .null, .boolean, .number: value
    case .string(let text): .string(self.redacted(text))
    case .array(let elements): .array(elements.map { self.redacted($0) })
    case .object(let members):
      JSONValue(.object(members.map { JSONMember($0.name, self.redacted($0.value)) }))
    }
  }
}

extension SecretMask: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  var description: String { Self.replacement }
  var debugDescription: String { Self.replacement }
  var customMirror: Mirror { Mirror(self, children: []) }
}
