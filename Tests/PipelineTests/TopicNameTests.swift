import Testing

@testable import Pipeline

@Suite("Names of topics") struct TopicNameTests {
  @Test(
    "A topic's name gives its object",
    arguments: [
      ("/data/OpportunityChangeEvent", "Opportunity"), ("/data/Station__ChangeEvent", "Station__c"),
      ("/data/ns__Station__ChangeEvent", "ns__Station__c"), ("/data/ChangeEvent", "ChangeEvent"),
      ("/data/ChangeEvents", "ChangeEvents"), ("/event/Order_Event__e", "Order_Event__e"),
      ("OpportunityChangeEvent", "Opportunity"), ("", ""),
    ])
  func entity(topic: String, entity: String) { #expect(TopicName.entity(topic) == entity) }

  @Test("The channel of all changes and custom channels are recognized")
  func channels() {
    for topic in ["/data/ChangeEvents", "/data/Sales__chn", "/event/Orders__chn"] {
      #expect(TopicName.isChannel(topic) && TopicName.isValid(topic))
    }
    for topic in ["/data/AccountChangeEvent", "/event/Order_Event__e", "/data/Sales__chnx"] {
      #expect(!TopicName.isChannel(topic) && TopicName.isValid(topic))
    }
  }

  @Test(
    "Invalid topic names are refused",
    arguments: [
      "", "/", "/data", "/data/", "/event/", "data/X", "/other/X", "/data/X/Y", "//data/X",
      "/data//X", "/data/../X", "/data/X Y", "/data/Ä", "/data/X\u{0}", "/Data/X",
      "/data/" + String(repeating: "x", count: 201),
    ])
  func invalid(topic: String) { #expect(!TopicName.isValid(topic)) }

  @Test("Topics of changes have one of three forms, and those of platform events any")
  func forms() {
    for topic in [
      "/data/ContactChangeEvent", "/data/Foo__ChangeEvent", "/data/ChangeEvents",
      "/data/Sales__chn", "/event/Order__e", "/event/LoginEventStream", "/event/Orders__chn",
    ] {
      #expect(TopicName.hasKnownForm(topic))
    }
    for topic in [
      "/data/Contact", "/data/Foo__c", "/data/ChangeEvent", "/data/ContactChangeEvents",
      "/data/contactchangeevent", "/data/Order__e",
    ] {
      #expect(!TopicName.hasKnownForm(topic))
    }
  }

  @Test("A name of two hundred letters is accepted")
  func longest() { #expect(TopicName.isValid("/data/" + String(repeating: "x", count: 200))) }
}
