/// What an admin does to a field in Setup: `add Account.Score__c number`, `hide Contact.Level__c`.
package struct FieldChange: Sendable, Equatable {
  enum Action: Equatable {
    case add(FieldType)
    case convert(to: FieldType)
    /// Gives the field another API name; its ID stays.
    case rename(to: String)
    /// Changes a formula, and so its value in three of four records.
    case edit
    /// From the user, by field-level security.
    case hide
    case show
    case delete
    /// Brings a deleted field back with its values.
    case undelete
    /// Edits the values of a picklist.
    case picklist(Picklist.Change)
  }

  enum FieldType: Equatable {
    case text, number, checkbox, date, dateTime
    /// Half the value of a number field.
    case formula(of: String)

    init?(_ text: Substring) {
      switch text {
      case "text": self = .text
      case "number": self = .number
      case "checkbox": self = .checkbox
      case "date": self = .date
      case "datetime": self = .dateTime
      case _ where text.hasPrefix("formula:"): self = .formula(of: String(text.dropFirst(8)))
      default: return nil
      }
    }
  }

  var action: Action
  var object: String
  var field: String
  /// As it was read.
  let text: String

  package init(parsing text: String) throws {
    // Names of values may have spaces.
    let words = text.split(separator: " ", maxSplits: 2)
    let value = words.first.flatMap { action in
      Picklist.Change(
        action,
        words.count == 3 ? words[2].split(separator: "|", omittingEmptySubsequences: false) : [])
    }
    let type = words.count == 3 && words.first != "rename" ? FieldType(words[2]) : nil
    let action: Action? =
      switch (words.first, words.count, type) {
      case _ where value != nil: value.map { .picklist($0) }
      case ("add", 3, let type?): .add(type)
      case ("convert", 3, let type?): .convert(to: type)
      case ("rename", 3, nil): .rename(to: String(words[2]))
      case ("edit", 2, nil): .edit
      case ("hide", 2, nil): .hide
      case ("show", 2, nil): .show
      case ("delete", 2, nil): .delete
      case ("undelete", 2, nil): .undelete
      default: nil
      }
    let names = words.dropFirst().first?.split(separator: ".") ?? []
    guard let action, names.count == 2 else {
      throw SimulatorError(
        .configuration,
        "change=add|convert|rename|edit|hide|show|delete|undelete, field=Object.Field and, for add and "
          + "convert, type=text|number|checkbox|date|datetime|formula:NumberField, for rename, "
          + "to=Name are needed; or change=add_value|rename_value|relabel_value|activate_value|"
          + "deactivate_value|move_value, field=Object.Field, value=Value and, to rename, relabel and "
          + "move, to=Text|Place")
    }
    (self.action, self.text) = (action, text)
    (self.object, self.field) = (String(names[0]), String(names[1]))
  }
}
