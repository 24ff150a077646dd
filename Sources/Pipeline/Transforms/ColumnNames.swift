internal import JSON

/// The columns that a stage names in its configuration.
///
/// One stage serves every schema of a pipeline, and a field may come or go with the next schema,
/// so a name that a schema lacks is no error by default. A name that *no* schema has is most
/// likely a typing mistake: `unmatched` tells, and the run reports it.
public final class ColumnNames {
  /// What to do when a schema lacks one of the names.
  public enum Missing: String, Sendable, CaseIterable {
    /// Goes on; the name is reported when the run ends and no schema had it.
    case ignore
    /// The run stops at the first schema that lacks it.
    case fail
  }

  public let names: Set<String>
  public let missing: Missing
  private var unseen: Set<String>

  public init(_ names: some Sequence<String>, missing: Missing = .ignore) {
    self.names = Set(names)
    self.missing = missing
    self.unseen = self.names
  }

  /// Names that no layout has had so far, in alphabetical order.
  public var unmatched: [String] { self.unseen.sorted() }

  /// Notes which names a layout has. Throws `TransformError` when it lacks one and must not.
  func match(_ layout: RecordLayout, stage: String) throws {
    let present = Set(layout.columns.map(\.name))
    if self.missing == .fail {
      let absent = self.names.subtracting(present).sorted()
      guard absent.isEmpty else {
        throw TransformError(
          .unknownColumn,
          "stage \(stage): no column \(absent.map { "'\($0)'" }.joined(separator: ", ")) "
            + "(\(layout.origin)); correct the name, or set \"missing\" to \"ignore\"")
      }
    }
    self.unseen.subtract(present)
  }
}

extension ColumnNames {
  /// Reads `columns`, an array of names, and `missing`. Reports an empty list and repeated names.
  convenience init?(listIn reader: JSONReader) {
    let missing: Missing = reader.choice("missing", called: "choice") ?? .ignore
    guard let names = reader.strings("columns", required: true) else { return nil }
    if reader.any("columns")?.array?.isEmpty == true { reader.report("columns", "names no column") }
    var seen: Set<String> = []
    for name in names where !seen.insert(name).inserted {
      reader.report("columns", "names '\(name)' twice")
    }
    self.init(names, missing: missing)
  }
}
