import Testing

@testable import Pipeline

@Suite("Findings of a comparison") struct CopyFindingsTests {
  private static let kinds = [
    "equal", "young", "marked", "outdated", "missing", "differing", "extra", "not_found",
    "left_out", "outside", "refused", "refused_missing", "unreadable", "unreadable_missing", "gone",
  ]

  @Test("The classes add up to the total, whatever the kinds of the records")
  func total() {
    var findings = CopyFindings()
    for (index, kind) in Self.kinds.enumerated() {
      findings.add(index + 1, kind: kind)
      findings.total += index + 1
      #expect(findings.uncounted == 0, "\(kind)")
    }
    findings.takeBack(undecidable: [CopyFindings.LeftOut(field: "stage filter", reason: "x")])
    #expect(findings.uncounted == 0)
    #expect(findings.undecided == 5 + 10 && findings.missing == 0 && findings.outside == 0)
  }

  @Test(
    "A copy is equal only if nothing is missing, different or uncounted",
    arguments: [
      ("equal", .equal), ("young", .equal), ("marked", .equal), ("left_out", .equal),
      ("gone", .equal), ("outdated", .incomplete), ("refused", .incomplete),
      ("unreadable", .incomplete), ("lost", .incomplete), ("missing", .drift),
      ("differing", .drift), ("extra", .drift), ("not_found", .drift), ("outside", .drift),
      ("refused_missing", .drift), ("unreadable_missing", .drift),
    ] as [(String, CopyFindings.Verdict)])
  func verdict(kind: String, verdict: CopyFindings.Verdict) {
    var findings = CopyFindings()
    findings.add(30, kind: "equal")
    findings.add(10, kind: kind)
    findings.total = 40
    #expect(findings.verdict == verdict)
  }

  @Test("Reasons are counted with some IDs, and too many different ones are counted together")
  func reasons() {
    var reasons = OmissionReasons()
    for index in 0..<60 {
      for _ in 0..<2 {
        reasons.add(
          OmittedRecord(.refused, recordID: "r\(index)", stamp: nil, reason: "reason \(index)"))
      }
    }
    reasons.add(OmittedRecord(.leftOut, recordID: "x", stamp: nil))
    #expect(reasons.all.count == 50)
    #expect(reasons.all[0].count == 2 && reasons.all[0].records == ["r0", "r0"])
    #expect(reasons.all[49].reason == "other reasons")
    #expect(reasons.all.reduce(0) { $0 + $1.count } == 120)
  }
}
