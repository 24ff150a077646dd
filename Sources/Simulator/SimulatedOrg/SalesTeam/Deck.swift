/// Cards in random order. Each is drawn as often as the deck has it before the deck is shuffled again,
/// so that rare things happen too, whatever the seed.
struct Deck<Card> {
  private let cards: [Card]
  private var rest: [Card] = []

  init(_ counts: [(Card, Int)]) {
    self.cards = counts.flatMap { card, count in repeatElement(card, count: count) }
  }

  mutating func draw(_ random: inout RandomStream) -> Card {
    if self.rest.isEmpty { self.rest = self.cards }
    return self.rest.remove(at: random.below(self.rest.count))
  }
}
