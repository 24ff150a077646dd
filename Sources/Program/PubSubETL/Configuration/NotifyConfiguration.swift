internal import Bytes
import HTTPClient
import JSON

/// Whom to notify when an incident of a pipeline begins and ends (`notify`).
struct NotifyConfiguration: KeyedObject, Sendable, Equatable {
  /// A program and its arguments, at least the program; nil for none. A program with a slash is an absolute
  /// path.
  private(set) var command: [String]?
  /// Where a JSON body is posted to; nil for nowhere.
  private(set) var webhook: String?
  /// The header that has `secret`.
  private(set) var header = "Authorization"
  private(set) var secret: Secret?
  /// Absolute; nil for the certificates of the system.
  private(set) var caFile: String?
  /// The greatest distance of a topic's `complete_through` from the present; nil for any.
  var lag: Duration?
  /// The greatest time since a position was confirmed; nil for any.
  var positionAge: Duration?
  /// How many dead letters may wait; nil for any number.
  var deadLetters: Int?
  /// Whether a difference that `verify` finds is an incident.
  var drift = false

  /// Whether notifications are sent; otherwise incidents are only printed to standard error.
  var calls: Bool { self.command != nil || self.webhook != nil }

  static var keys: [Key<Self>] {
    [
      .key(
        "command", \.command, .command,
        "A program and its arguments, run without a shell. It gets JSON on standard input.",
        example: ["/usr/local/bin/page", "data-team"]),
      .key(
        "webhook", \.webhook, .webhook,
        "The URL that the JSON is posted to: https, or http to this machine. Redirects are not followed.",
        example: "https://alerts.example.com/hooks/etl"),
      .key(
        "header", \.header, .headerName, "The header of the request that has the secret.",
        example: "X-Api-Key"),
      .key(
        "secret", \.secret, .headerValue, "The value of this header.",
        example: "${NOTIFY_SECRET}", secrecy: .secret),
      .key(
        "ca_file", \.caFile, .readableFile,
        "PEM file of the only certificates to trust for webhook; empty means unset.",
        example: "ca.pem"),
      .key(
        "lag", \.lag, .duration(in: .seconds(300) ... .seconds(259_200)),
        "An incident begins when the changes up to some time longer ago are not all exported.",
        example: "1h"),
      .key(
        "position_age", \.positionAge, .duration(in: .seconds(3600) ... .seconds(259_200)),
        "An incident begins when nothing has confirmed a position for this time. The service keeps it "
          + "for 72h.", example: "24h"),
      .key(
        "dead_letters", \.deadLetters, .integer(in: 0 ... .max),
        "An incident begins when more dead letters than this are waiting.", example: 0),
      .key(
        "drift", \.drift, .bool,
        "Whether a difference that pubsub-etl verify finds begins an incident."),
    ]
  }

  mutating func check(_ reader: JSONReader) {
    if reader.has("command"), reader.has("webhook") {
      reader.report("webhook", "either webhook or command, not both")
    }
    for key in ["secret", "header", "ca_file"] where reader.has(key) && !reader.has("webhook") {
      reader.report(key, "belongs to webhook, and there is none")
    }
    // Those who know the path of a webhook can often post to it.
    if let webhook, let start = webhook.firstRange(of: "://")?.upperBound {
      let path = webhook[start...].drop { $0 != "/" }.dropFirst()
      reader.configuration.secrets.add(String(path))
    }
    // A server may quote the token without the word before it.
    if let token = self.secret?.value.split(separator: " ").last {
      reader.configuration.secrets.add(String(token))
    }
  }
}

extension Kind<[String]> {
  /// A program and its arguments.
  fileprivate static var command: Self {
    Self.strings(.list(of: .text(), minCount: 1)).map { reader, name, words in
      guard let program = words.first, !program.isEmpty else {
        reader.report(name, "expected a program and its arguments, found none")
        return nil
      }
      guard !words.contains(where: { $0.utf8.contains(0) }) else {
        reader.report(name, "an argument cannot contain U+0000")
        return nil
      }
      // A bare name is looked up in PATH; anything else is a path like all others.
      guard program.utf8.contains(UInt8(ascii: "/")) else { return words }
      if let mistake = FilePath.mistake(in: program) {
        reader.report(name, mistake)
        return nil
      }
      return [FilePath.resolve(program, base: reader.configuration.base)] + words.dropFirst()
    }
  }
}

extension Kind<String> {
  fileprivate static var webhook: Self {
    Self.text.checked { text in
      do throws(HTTPError) {
        try HTTPRequest(.post, text).checkURL()
        return nil
      } catch {
        // The text may be a secret.
        return
          "expected a URL that begins with https://, without user and password; http:// is for "
          + "this machine only"
      }
    }
  }

  fileprivate static var headerName: Self {
    Self.text.checked { text in
      guard !["content-length", "transfer-encoding", "host"].contains(text.lowercased()) else {
        return "the program sets the header \(text) itself"
      }
      let isName = text.utf8.allSatisfy { $0.isWordCharacter || $0 == UInt8(ascii: "-") }
      return isName ? nil : "expected the name of a header: letters, digits, '-' and '_'"
    }
  }
}

extension Kind<Secret> {
  fileprivate static var headerValue: Self {
    Self.secret.checked { secret in
      secret.value.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F }
        ? nil : "a header cannot contain line ends and other control characters"
    }
  }
}
