import Testing

@testable import ObjectStore

@Suite("XML of object stores")
struct XMLElementTests {
  private func parse(_ text: String) throws -> XMLElement {
    try XMLElement(parsing: Array(text.utf8))
  }

  private static let listing = """
    <?xml version="1.0" encoding="UTF-8"?>
    <!-- a comment -->
    <ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/" xmlns:x='y'>
      <Name>exports</Name><Prefix/><Owner x:type="z" ></Owner >
      <Contents><Key>a&amp;b &lt;&#x43;&#100;&gt;&quot;&apos;é</Key><Size>1</Size></Contents>
      <Contents><Key><![CDATA[<raw>&amp;]]></Key><?pi ?><Size>2</Size></Contents>
    </ListBucketResult>
    <!-- the end -->

    """

  @Test("A listing is read") func reads() throws {
    let root = try self.parse("\u{FEFF}" + Self.listing)
    #expect(root.name == "ListBucketResult")
    #expect(root["Name"] == "exports")
    #expect(root["Prefix"] == "")
    #expect(root["IsTruncated"] == nil)
    #expect(root.all("Contents").map { $0["Key"] } == ["a&b <Cd>\"'é", "<raw>&amp;"])
    #expect(root.all("Contents").map { $0["Size"] } == ["1", "2"])
  }

  @Test("A document that is cut anywhere is refused") func cut() throws {
    let document = Array(Self.listing.utf8)
    let end = try #require(Self.listing.utf8.lastIndex(of: UInt8(ascii: "<")))
    let length = Self.listing.utf8.distance(from: Self.listing.startIndex, to: end)
    for count in 0..<length - 1 {
      let isWhole = String(decoding: document[..<count], as: UTF8.self)
        .contains("</ListBucketResult>")
      if isWhole { continue }
      #expect(throws: XMLError.self) { try XMLElement(parsing: Array(document[..<count])) }
    }
  }

  @Test(
    "What is not a plain document is refused",
    arguments: [
      "", " ", "text", "{}", "<a>", "<a></b>", "<a/><b/>", "<a/>text", "<a b></a>", "<a b=c/>",
      "<a b='<'/>", "<a b='1'c='2'/>", "<a>&unknown;</a>", "<a>&#0;</a>", "<a>&#xD800;</a>",
      "<a>&#+5;</a>", "<a>&#x+5;</a>", "<a>&amp</a>", "<a>\u{1}</a>", "<1/>", "< a/>",
      "<!DOCTYPE a [<!ENTITY b \"c\">]><a>&b;</a>", "<a><!-- </a>", "<a><![CDATA[ </a>", "<a/ >",
      "<a>&aaaaaaaaaaaaaaaaaaaaaaaa;</a>",
    ])
  func refuses(_ text: String) throws {
    #expect(throws: XMLError.self) { try self.parse(text) }
  }

  @Test("Text that is not UTF-8 is refused") func encoding() throws {
    #expect(throws: XMLError.self) {
      try XMLElement(parsing: Array("<a>".utf8) + [0xFF] + Array("</a>".utf8))
    }
  }

  @Test("Depth and number of elements are limited") func limits() throws {
    func nested(_ depth: Int) -> String {
      String(repeating: "<a>", count: depth) + String(repeating: "</a>", count: depth)
    }
    _ = try self.parse(nested(16))
    #expect(throws: XMLError.self) { try self.parse(nested(17)) }
    _ = try self.parse("<a>" + String(repeating: "<b/>", count: 99_999) + "</a>")
    #expect(throws: XMLError.self) {
      try self.parse("<a>" + String(repeating: "<b/>", count: 100_000) + "</a>")
    }
  }
}
