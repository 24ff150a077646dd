import Glibc

/// Numbers and times as people write them.
enum Phrase {
  /// `1 event`, `7,512 events`.
  static func count(_ number: Int, _ singular: String, _ plural: String? = nil) -> String {
    "\(ProgressLine.grouped(Int64(number))) \(number == 1 ? singular : plural ?? singular + "s")"
  }

  /// `50 ms`, `1 s`, `2 min 05 s`: whole seconds from one second on.
  static func duration(_ duration: Duration) -> String {
    let milliseconds = max(0, Int64((duration / .milliseconds(1)).rounded()))
    guard milliseconds >= 1000 else { return ProgressLine.age(milliseconds: milliseconds) }
    return ProgressLine.age(milliseconds: (milliseconds + 500) / 1000 * 1000)
  }

  /// The time of day by the clock on the wall, `14:03:15`; with its date when that is not today's.
  ///
  /// - Parameters: milliseconds since 1970.
  static func localTime(_ milliseconds: Int64, now: Int64) -> String {
    func parts(_ milliseconds: Int64) -> tm {
      var seconds = time_t(milliseconds / 1000)
      var parts = tm()
      localtime_r(&seconds, &parts)
      return parts
    }
    func padded(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
    let (moment, today) = (parts(milliseconds), parts(now))
    let time = "\(padded(moment.tm_hour)):\(padded(moment.tm_min)):\(padded(moment.tm_sec))"
    if (moment.tm_year, moment.tm_yday) == (today.tm_year, today.tm_yday) { return time }
    return "\(moment.tm_year + 1900)-\(padded(moment.tm_mon + 1))-\(padded(moment.tm_mday)) \(time)"
  }
}
