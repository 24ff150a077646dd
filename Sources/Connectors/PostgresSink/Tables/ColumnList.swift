protocol NamedColumn: Sendable {
  var name: String { get set }
}

/// Columns in their order, found by name: an object may have 800 of them.
struct ColumnList<Element: NamedColumn>: RandomAccessCollection, Sendable {
  private var elements: [Element] = []
  private var places: [String: Int] = [:]

  var startIndex: Int { self.elements.startIndex }
  var endIndex: Int { self.elements.endIndex }

  subscript(index: Int) -> Element { self.elements[index] }

  subscript(name: String) -> Element? { self.places[name].map { self.elements[$0] } }

  /// - Parameter column: a column whose name is not in the list.
  mutating func append(_ column: Element) {
    self.places[column.name] = self.elements.count
    self.elements.append(column)
  }

  /// - Returns: false if no column has that name.
  @discardableResult
  mutating func change(_ name: String, _ body: (inout Element) -> Void) -> Bool {
    guard let place = self.places.removeValue(forKey: name) else { return false }
    body(&self.elements[place])
    self.places[self.elements[place].name] = place
    return true
  }
}
