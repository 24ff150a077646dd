import JSON
import PubSubAPI

extension ConfigurationReader {
  /// `managed`: the developer name or record ID of a managed subscription, which is for one topic and
  /// knows itself where a first run begins.
  func managed(
    _ reader: JSONReader, topics: [SourceConfiguration.Topic]
  ) -> ManagedSubscription.Record? {
    guard let text = reader.string("managed") else { return nil }
    guard let record = ManagedSubscription.Record(text) else {
      reader.report(
        "managed",
        "expected the developer name or record ID of a ManagedEventSubscription. A name has letters, "
          + "digits and single underscores, begins with a letter, and has at most 80 characters; an "
          + "ID has 15 or 18 letters and digits and begins with a digit")
      return nil
    }
    if topics.count > 1 {
      reader.report(
        "managed", "a managed subscription is for one topic, found \(topics.count) in 'topic'")
    }
    if topics.contains(where: { $0.start != nil }) {
      reader.report(
        "managed",
        "the subscription's own position, or its defaultReplay, decides where a first run begins; "
          + "remove 'start', or use it in a first run without 'managed'")
    }
    return record
  }
}

extension ManagedSubscription.Record {
  /// Developer names begin with a letter, record IDs with a digit; nil for what is neither.
  init?(_ text: String) {
    let bytes = Array(text.utf8)
    func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }
    func isLetter(_ byte: UInt8) -> Bool {
      (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
    }
    guard let first = bytes.first else { return nil }
    if isDigit(first) {
      guard [15, 18].contains(bytes.count), bytes.allSatisfy({ isDigit($0) || isLetter($0) }) else {
        return nil
      }
      self = .id(text)
      return
    }
    guard isLetter(first), bytes.count <= 80, bytes.last != UInt8(ascii: "_"),
      bytes.allSatisfy({ isDigit($0) || isLetter($0) || $0 == UInt8(ascii: "_") }),
      !text.contains("__")
    else { return nil }
    self = .developerName(text)
  }
}
