/// What the name of a topic tells (contract/semantics.md section 2).
package enum TopicName {
  /// Several entities share the stream.
  package static func isChannel(_ topic: String) -> Bool {
    topic == "/data/ChangeEvents" || topic.hasSuffix("__chn")
  }

  /// `Opportunity` of `/data/OpportunityChangeEvent`; the last part of other topics' names.
  package static func entity(_ topic: String) -> String {
    let last = topic.split(separator: "/").last.map { String($0) } ?? topic
    for suffix in ["__ChangeEvent", "ChangeEvent"] where last.hasSuffix(suffix) {
      let base = last.dropLast(suffix.count)
      if !base.isEmpty { return suffix.hasPrefix("__") ? "\(base)__c" : String(base) }
    }
    return last
  }
}
