internal import Glibc

/// Makes the value of a leaf from the record, the slot and a version number: equal arguments give equal
/// values, so a record's state is a number per slot and every full image can be made again.
struct ValueSource: Sendable {
  /// Version bits. A long text is edited in place: the lower byte counts the edits since its base.
  enum Version {
    /// The value does not depend on the record: merged changes give several records one value.
    static let shared: UInt32 = 1 << 31
    static let long: UInt32 = 1 << 30
    /// The other bits are choices of an edited picklist, which is no long text.
    static let chosen: UInt32 = 1 << 30
    static let editMask: UInt32 = 0xff
    /// The default of a checkbox, which is false in every record.
    static let unchecked: UInt32 = 2
  }

  private static let accountPrefix = EntityModel.account.keyPrefix
  private static let contactPrefix = EntityModel.contact.keyPrefix

  private let mix: GeneratorMix
  private let words = SampleText.words
  private let exotic = SampleText.exotic
  private let picklist = SampleText.picklist
  private let cities = SampleText.cities
  private let countries = SampleText.countries
  private let firstNames = SampleText.firstNames
  private let lastNames = SampleText.lastNames
  private let salutations = SampleText.salutations
  private let accuracies = SampleText.accuracies

  init(mix: GeneratorMix) {
    self.mix = mix
  }

  private func random(_ record: UInt64, _ slot: Int, _ version: UInt32) -> RandomStream {
    let owner = version & Version.shared != 0 ? 0 : record
    return RandomStream(
      seed: RandomStream.mix(owner &+ UInt64(slot) << 32 &+ UInt64(version)))
  }

  func cell(
    _ kind: ValueKind, record: UInt64, slot: Int, version: UInt32, into image: inout EventImage
  ) -> Cell {
    var random = self.random(record, slot, version)
    switch kind {
    case .boolean: return .boolean(version != Version.unchecked && random.next() & 1 == 1)
    case .formula: preconditionFailure("formulas are computed by the reader of records")
    case .textOf(let number):
      let value = self.cell(number, record: record, slot: slot, version: version, into: &image)
      guard case .double(let value) = value else {
        preconditionFailure("only numbers become texts")
      }
      return image.text((value.isFinite ? value : 0).description.utf8)
    case .choices(let list):
      let values = self.choices(list, record: record, slot: slot, version: version).map {
        list.value($0)
      }
      return image.text(values.joined(separator: ";").utf8)
    case .integer:
      return .int(
        random.chance(self.mix.extremes)
          ? (random.next() & 1 == 0 ? .max : .min) : Int32(random.below(100_000)))
    case .number, .currency, .percent, .latitude, .longitude:
      return .double(self.double(kind, &random))
    case .dateTime, .createdDate, .modifiedDate:
      // 1950 to 2100, millisecond resolution
      return .long(-631_152_000_000 + Int64(random.below(4_733_510_400_000)))
    case .dateOnly: return .long(Int64(random.below(73_000) - 25_567) * 86_400_000)
    case .timeOnly: return .long(Int64(random.below(86_400)) * 1000)
    case .longText, .richText:
      let start = image.arena.count
      self.appendLongText(record: record, slot: slot, version: version, to: &image.arena)
      return .text(start: Int32(start), count: Int32(image.arena.count - start))
    case .accountID: return image.text(RecordPool.id(Self.accountPrefix, of: version))
    case .contactID: return image.text(RecordPool.id(Self.contactPrefix, of: version))
    default:
      let start = image.arena.count
      self.appendText(kind, &random, to: &image.arena)
      return .text(start: Int32(start), count: Int32(image.arena.count - start))
    }
  }

  /// The numbers of the choices that a record has in a picklist.
  func choices(_ list: Picklist, record: UInt64, slot: Int, version: UInt32) -> [Int] {
    guard version & Version.chosen == 0 else { return list.numbers(of: version) }
    // As `appendText` chose before the picklist was edited.
    var random = self.random(record, slot, version)
    guard list.isMultiple else { return [random.below(self.picklist.count)] }
    return (0...random.below(4)).map { _ in random.below(self.picklist.count) }
  }

  private func double(_ kind: ValueKind, _ random: inout RandomStream) -> Double {
    switch kind {
    case .latitude: return Double(random.below(180_000_000) - 90_000_000) / 1e6
    case .longitude: return Double(random.below(360_000_000) - 180_000_000) / 1e6
    case .percent: return Double(random.below(1001)) / 10
    default: break
    }
    if random.chance(self.mix.nonfinite) {
      return [Double.nan, .infinity, -.infinity][random.below(3)]
    }
    if random.chance(self.mix.extremes) {
      let extremes = [
        Double.greatestFiniteMagnitude, -.greatestFiniteMagnitude, .leastNonzeroMagnitude, -0.0,
        0.1 + 0.2, 1e15, 9_007_199_254_740_992, -123_456_789_012_345.67, 1e-7, 1.0 / 3,
      ]
      return extremes[random.below(extremes.count)]
    }
    let cents = Double(random.below(1_000_000_00)) / 100
    let value = random.chance(0.3) ? cents.rounded() : cents
    return random.chance(0.1) ? -value : value
  }

  private func appendText(
    _ kind: ValueKind, _ random: inout RandomStream, to bytes: inout [UInt8]
  ) {
    switch kind {
    case .picklist: bytes += self.picklist[random.below(self.picklist.count)]
    case .multiPicklist:
      for index in 0...random.below(4) {
        if index > 0 { bytes.append(UInt8(ascii: ";")) }
        bytes += self.picklist[random.below(self.picklist.count)]
      }
    case .phone:
      bytes += "+49 ".utf8
      Self.appendDigits(9, &random, to: &bytes)
    case .email:
      Self.appendDigits(8, &random, to: &bytes)
      bytes += "@example.com".utf8
    case .url:
      bytes += "https://example.com/?id=".utf8
      Self.appendDigits(6, &random, to: &bytes)
    case .entityID, .createdBy, .modifiedBy:
      bytes += RecordID.bytes(prefix: "0RF", number: UInt64(random.below(1_000_000)))
    case .accountID, .contactID:
      preconditionFailure("references are made of their version alone")
    case .encrypted:
      bytes += "********".utf8
      Self.appendDigits(4, &random, to: &bytes)
    case .autoNumber:
      bytes += "ON-".utf8
      Self.appendDigits(7, &random, to: &bytes)
    case .postalCode: Self.appendDigits(5, &random, to: &bytes)
    case .city: bytes += self.cities[random.below(self.cities.count)]
    case .country, .state: bytes += self.countries[random.below(self.countries.count)]
    case .countryCode, .stateCode:
      bytes.append(UInt8(ascii: "A") + UInt8(random.below(26)))
      bytes.append(UInt8(ascii: "A") + UInt8(random.below(26)))
    case .geocodeAccuracy: bytes += self.accuracies[random.below(self.accuracies.count)]
    case .salutation: bytes += self.salutations[random.below(self.salutations.count)]
    case .firstName: bytes += self.firstNames[random.below(self.firstNames.count)]
    case .lastName: bytes += self.lastNames[random.below(self.lastNames.count)]
    case .street:
      self.appendWords(1 + random.below(2), &random, to: &bytes)
      bytes.append(UInt8(ascii: random.chance(0.1) ? "\n" : " "))
      Self.appendDigits(2, &random, to: &bytes)
    default:
      if random.chance(self.mix.exotic) {
        bytes += self.exotic[random.below(self.exotic.count)]
      } else {
        self.appendWords(1 + random.below(4), &random, to: &bytes)
      }
    }
  }

  private func appendWords(
    _ count: Int, _ random: inout RandomStream, to bytes: inout [UInt8]
  ) {
    for index in 0..<count {
      if index > 0 { bytes.append(UInt8(ascii: " ")) }
      bytes += self.words[random.below(self.words.count)]
    }
  }

  private static func appendDigits(
    _ count: Int, _ random: inout RandomStream, to bytes: inout [UInt8]
  ) {
    var number = random.next()
    for _ in 0..<count {
      bytes.append(UInt8(ascii: "0") + UInt8(number % 10))
      number /= 10
    }
  }

  // MARK: Long texts

  /// Lines joined by CR LF, at least 1000 characters when the version has the `long` bit.
  private func appendLongText(
    record: UInt64, slot: Int, version: UInt32, to bytes: inout [UInt8]
  ) {
    for (index, line) in self.lines(record: record, slot: slot, version: version).enumerated() {
      if index > 0 { bytes += [13, 10] }
      bytes += line
    }
  }

  private func lines(record: UInt64, slot: Int, version: UInt32) -> [[UInt8]] {
    let base = version & ~Version.editMask
    let edits = version & Version.editMask
    var random = self.random(record, slot, base)
    guard version & Version.long != 0 else {
      var line: [UInt8] = []
      if random.chance(self.mix.exotic) {
        line += self.exotic[random.below(self.exotic.count)]
      }
      self.appendWords(3 + random.below(12), &random, to: &line)
      return [line]
    }
    var lines: [[UInt8]] = []
    for number in 0..<(24 + random.below(16)) {
      var line = Array("\(number + 1). ".utf8)
      self.appendWords(8 + random.below(3), &random, to: &line)
      if random.chance(self.mix.exotic / 4) { line += "Grüße 👋🏽".utf8 }
      lines.append(line)
    }
    for edit in 0..<edits {
      var change = self.random(record, slot, base | (edit + 1))
      let number = change.below(lines.count)
      var line = Array("\(number + 1). (\(edit + 1)) ".utf8)
      self.appendWords(6 + change.below(4), &change, to: &line)
      lines[number] = line
    }
    return lines
  }

  /// The value of `version` as a unified diff against the version one edit before it, as
  /// ChangeEvents.md#long-texts describes it.
  func appendDiff(record: UInt64, slot: Int, version: UInt32, to bytes: inout [UInt8]) {
    precondition(version & Version.editMask > 0, "a base version has nothing to differ from")
    let old = self.lines(record: record, slot: slot, version: version - 1)
    let new = self.lines(record: record, slot: slot, version: version)
    var whole: [UInt8] = []
    self.appendLongText(record: record, slot: slot, version: version, to: &whole)
    bytes += "--- \n+++ ".utf8
    bytes += MessageDigest.sha256Hex(whole[...])
    for (index, pair) in zip(old, new).enumerated() where pair.0 != pair.1 {
      bytes += "\n@@ -\(index + 1),1 +\(index + 1),1 @@\n-".utf8
      bytes += pair.0
      bytes += "\n+".utf8
      bytes += pair.1
    }
  }

  /// A text of `byteCount` bytes, for events near the size limit.
  func appendHugeText(byteCount: Int, seed: UInt64, to bytes: inout [UInt8]) {
    var random = RandomStream(seed: seed)
    let end = bytes.count + byteCount
    while bytes.count < end {
      self.appendWords(12, &random, to: &bytes)
      bytes.append(10)
    }
    bytes.removeLast(bytes.count - end)
    // The cut may have gone through a character: spaces for the bytes that are left of it.
    var cut = end
    while bytes[cut - 1] & 0xC0 == 0x80 { cut -= 1 }
    if bytes[cut - 1] >= 0xC0 {
      bytes.replaceSubrange((cut - 1)..., with: repeatElement(0x20, count: end - cut + 1))
    }
  }
}
