import JSON
import Testing

@testable import PubSubETL

@Suite("The book of incidents") struct IncidentBookTests {
  private let hour: Int64 = 3_600_000
  private let refused = Incident.Finding(message: "refused", reason: "login", exitCode: 77)
  private let unavailable = Incident.Finding(
    message: "no answer", reason: "unavailable", exitCode: 69)

  /// Makes every call that is due, and returns them.
  private func deliver(_ book: inout IncidentBook) -> [Notice.Event] {
    var events: [Notice.Event] = []
    while let event = book.due {
      _ = book.calls(event)
      book.called(event)
      events.append(event)
    }
    return events
  }

  @Test("A failure is told once, then its end once")
  func once() {
    var book = IncidentBook()
    #expect(book.saw(.failing, self.refused, at: 0) == .show)
    #expect(self.deliver(&book) == [.begin(.failing)])
    for run in 1...20 {
      #expect(book.saw(.failing, self.refused, at: Int64(run) * 600_000) == .beSilent)
      #expect(self.deliver(&book) == [])
    }
    let ended = book.sawOver(.failing, at: 4 * self.hour)
    #expect(ended?.count == 21)
    #expect(ended?.duration(at: 5 * self.hour) == 4 * self.hour)
    #expect(self.deliver(&book) == [.end(.failing)])
    #expect(book == IncidentBook())
    #expect(book.sawOver(.failing, at: 6 * self.hour) == nil)
  }

  @Test("What lasts is shown again a day later, also after a clock that went back")
  func reminders() {
    var book = IncidentBook()
    #expect(book.saw(.failing, self.refused, at: 100 * self.hour) == .show)
    #expect(book.saw(.failing, self.refused, at: 123 * self.hour) == .beSilent)
    #expect(
      book.saw(.failing, self.refused, at: 124 * self.hour)
        == .remind(since: 100 * self.hour, count: 3))
    #expect(book.saw(.failing, self.refused, at: 147 * self.hour) == .beSilent)
    // The clock had been wrong by years.
    #expect(
      book.saw(.failing, self.refused, at: self.hour) == .remind(since: 100 * self.hour, count: 5))
    #expect(book.saw(.failing, self.refused, at: 2 * self.hour) == .beSilent)
  }

  @Test("Another reason is shown, each of them once")
  func reasons() {
    var book = IncidentBook()
    #expect(book.saw(.failing, self.refused, at: 0) == .show)
    #expect(book.saw(.failing, self.unavailable, at: 1) == .show)
    #expect(book.saw(.failing, self.refused, at: 2) == .beSilent)
    #expect(book.saw(.failing, self.unavailable, at: 3) == .beSilent)
    for number in 0..<100 {
      let finding = Incident.Finding(message: "m", reason: "reason \(number)")
      #expect(book.saw(.failing, finding, at: 4) == .show)
    }
    #expect(book[.failing]?.shownReasons.count == IncidentBook.maxReasonCount)
    #expect(self.deliver(&book) == [.begin(.failing)])
  }

  @Test("What ends before anybody could be told is told with its end, in this order")
  func late() {
    var book = IncidentBook()
    _ = book.saw(.failing, self.refused, at: 0)
    _ = book.calls(.begin(.failing))
    _ = book.sawOver(.failing, at: self.hour)
    #expect(book.due == .begin(.failing))
    #expect(book.calls(.begin(.failing)).attempts == 2)
    book.called(.begin(.failing))
    #expect(book.due == .end(.failing))
    #expect(book.calls(.end(.failing)).attempts == 1)
    book.called(.end(.failing))
    #expect(book == IncidentBook())
  }

  @Test(
    "What begins again before its end was told is the same incident, or another one if somebody may know the end"
  )
  func again() {
    var book = IncidentBook()
    _ = book.saw(.failing, self.refused, at: 0)
    #expect(self.deliver(&book) == [.begin(.failing)])
    _ = book.sawOver(.failing, at: self.hour)
    // Standard error has said that it is over.
    #expect(book.saw(.failing, self.refused, at: 2 * self.hour) == .show)
    #expect(book[.failing]?.since == 0)
    #expect(self.deliver(&book) == [])
    _ = book.sawOver(.failing, at: 3 * self.hour)
    // The process is killed during this call.
    _ = book.calls(.end(.failing))
    #expect(book.saw(.failing, self.refused, at: 4 * self.hour) == .show)
    #expect(book[.failing]?.since == 4 * self.hour)
    #expect(book.due == .begin(.failing))
    #expect(book.calls(.begin(.failing)).attempts == 1)
  }

  @Test("Incidents of several kinds do not affect each other")
  func kinds() {
    var book = IncidentBook()
    _ = book.saw(.failing, self.refused, at: 0)
    _ = book.saw(.lag, Incident.Finding(message: "late", reason: "lag"), at: 1)
    #expect(self.deliver(&book) == [.begin(.failing), .begin(.lag)])
    _ = book.sawOver(.lag, at: 2)
    #expect(self.deliver(&book) == [.end(.lag)])
    #expect(book[.failing] != nil)
    book.forgetEnded()
    #expect(book.incidents.count == 1)
  }

  @Test("What is stored is what is read")
  func stored() throws {
    var book = IncidentBook()
    _ = book.saw(.failing, self.refused, at: 1)
    _ = book.calls(.begin(.failing))
    _ = book.saw(.deadLetters, Incident.Finding(message: "é\u{1B}", reason: "dead_letters"), at: 2)
    book.called(.begin(.failing))
    _ = book.sawOver(.failing, at: 3)
    let text = Array(book.json.text().utf8)
    #expect(IncidentBook(json: try JSONValue(parsing: text)) == book)
  }

  @Test(
    "A file of something else is no book",
    arguments: [
      "{}", "[]", "7", #"{"version":2,"incidents":[]}"#, #"{"version":1,"incidents":[{}]}"#,
      #"{"version":1,"incidents":[null]}"#,
    ])
  func damaged(text: String) throws {
    #expect(IncidentBook(json: try JSONValue(parsing: Array(text.utf8))) == nil)
  }

  @Test("Each member of a stored incident is checked")
  func hostile() throws {
    var book = IncidentBook()
    _ = book.saw(.failing, self.refused, at: 1)
    let good = book.json.text()
    let changes = [
      ("\"failing\"", "\"unknown\""), ("\"since_ms\":1", "\"since_ms\":-99999999999999999"),
      ("\"count\":1", "\"count\":\"1\""), ("\"attempts\":0", "\"attempts\":null"),
      (
        "\"shown_reasons\":[\"login 77\"]",
        "\"shown_reasons\":[\(Array(repeating: "\"a\"", count: 21).joined(separator: ","))]"
      ),
    ]
    for (part, replacement) in changes {
      let text = good.replacing(part, with: replacement)
      try #require(text != good, "\(part) is not in \(good)")
      #expect(IncidentBook(json: try JSONValue(parsing: Array(text.utf8))) == nil, "\(replacement)")
    }
    let twice = good.replacing("]}", with: ",\(book.incidents[0].json.text())]}")
    #expect(IncidentBook(json: try JSONValue(parsing: Array(twice.utf8))) == nil)
    let endless = good.replacing("\"count\":1", with: "\"count\":9223372036854775807")
    var counted = try #require(IncidentBook(json: try JSONValue(parsing: Array(endless.utf8))))
    // No overflow.
    _ = counted.saw(.failing, self.refused, at: 2)
  }
}
