import Testing

@testable import PubSubETL

@Suite("Configuration of the allowance")
struct AllowanceConfigurationTests {
  private static func pipeline(_ reserve: String) -> String {
    SamplePipeline.minimal.replacing(
      #""version": 1,"#, with: #""version": 1, "allowance": { "reserve": \#(reserve) },"#)
  }

  @Test(
    "A reserve is a share or a number of events",
    arguments: [
      (#""20%""#, .share(20)), (#""0%""#, .share(0)), (#""100%""#, .share(100)),
      ("5000", .events(5000)), (#""${RESERVE}""#, .events(300)),
    ] as [(String, AllowanceConfiguration.Reserve)])
  func reserves(text: String, reserve: AllowanceConfiguration.Reserve) throws {
    let configuration = try SamplePipeline().load(
      Self.pipeline(text), environment: ["RESERVE": "300"])
    #expect(configuration.allowance.reserve == reserve)
    #expect(ConfigurationSummary.text(configuration).contains("allowance     \(reserve.text) of a"))
  }

  @Test(
    "Any other value is a mistake that names both forms",
    arguments: [
      "-1", "20.5", #""101%""#, #""%""#, #""+5%""#, #""-1%""#, #""20 %""#, "true", "null", "{}",
    ])
  func mistakes(text: String) throws {
    let mistakes = try SamplePipeline().mistakes(Self.pipeline(text))
    #expect(mistakes.count == 1)
    #expect(
      mistakes.first?.contains(
        #"/allowance/reserve: expected a share of the day's events such as "20%""#) == true)
  }

  @Test("Shares are rounded up")
  func shares() {
    let share = AllowanceConfiguration.Reserve.share(20)
    #expect(
      [0, 1, 5, 6, 99, 100, 50_000].map { share.events(of: $0) } == [0, 1, 1, 2, 20, 20, 10_000])
    #expect(AllowanceConfiguration.Reserve.share(100).events(of: .max) == .max)
  }
}
