extension EventImage {
  /// Appends the members of `fields` of the truth file: values that are not null, unflattened.
  func appendFields(to text: inout [UInt8]) {
    var isFirst = true
    for step in self.schema.steps {
      switch step {
      case .required(let slot, _), .nullable(let slot, _):
        self.appendField(slot, &isFirst, to: &text)
      case .compound(let slot, let children), .switchableName(let slot, let children):
        guard case .record = self.cells[slot] else {
          self.appendField(slot, &isFirst, to: &text)
          continue
        }
        self.appendKey(slot, &isFirst, to: &text)
        text.append(UInt8(ascii: "{"))
        var isFirstChild = true
        for child in children { self.appendField(child.slot, &isFirstChild, to: &text) }
        text.append(UInt8(ascii: "}"))
      }
    }
  }

  private func appendKey(_ slot: Int, _ isFirst: inout Bool, to text: inout [UInt8]) {
    if !isFirst { text.append(UInt8(ascii: ",")) }
    isFirst = false
    text.append(UInt8(ascii: "\""))
    text += self.entity.slots[slot].name.utf8
    text.append(UInt8(ascii: "\""))
    text.append(UInt8(ascii: ":"))
  }

  private func appendField(_ slot: Int, _ isFirst: inout Bool, to text: inout [UInt8]) {
    let cell = self.cells[slot]
    if cell.isNull { return }
    self.appendKey(slot, &isFirst, to: &text)
    switch cell {
    case .null, .record: break
    case .boolean(let value): text += (value ? "true" : "false").utf8
    case .int(let value): text += value.description.utf8
    case .long(let value): text += value.description.utf8
    case .double(let value): JSONText.append(value, to: &text)
    case .text(let start, let count):
      JSONText.append(self.arena[Int(start)..<Int(start + count)], to: &text)
    }
  }
}
