/// The hosts under which Salesforce serves an org. Only one of them takes logins of programs; people often copy
/// another one from the browser.
///
/// Source: ServiceLogins.md#hosts.
package enum SalesforceHost {
  /// Hosts of pages, after the name of the org. `hasPackage`: the name ends in `--` and that of a package.
  private static let pages: [(suffix: String, hasPackage: Bool)] = [
    (".lightning.force.com", false), (".my.salesforce-setup.com", false), (".my.site.com", false),
    (".my.salesforce-sites.com", false), (".my.salesforce-scrt.com", false),
    (".file.force.com", false), (".builder.salesforce-experience.com", false),
    (".live-preview.salesforce-experience.com", false),
    (".preview.salesforce-experience.com", false), (".vf.force.com", true),
    (".visual.force.com", true), (".visualforce.com", true), (".content.force.com", true),
    (".documentforce.com", true), (".container.force.com", true),
  ]
  /// Parts of Salesforce that have orgs of one kind, as labels of host names.
  private static let partitions: Set<Substring> = [
    "sandbox", "develop", "scratch", "demo", "patch", "free", "trailblaze", "stm", "wait",
  ]
  /// Domains of Salesforce without an org's name in a known place.
  private static let domains = [
    ".salesforce.com", ".force.com", ".salesforce-setup.com", ".salesforce-sites.com",
    ".salesforce-experience.com", ".site.com", ".cloudforce.com",
  ]

  /// Beginnings of instance names, before a number.
  private static let instances: Set<Substring> = [
    "na", "eu", "ap", "cs", "um", "gs", "usa", "can", "bra", "ind", "aus", "jpn", "kor", "sgp",
    "idn", "deu", "fra", "gbr", "ita", "che", "swe", "isr", "are", "chn",
  ]

  /// What to use instead of a URL, or part of one, that names a host of Salesforce which takes no logins; nil
  /// for any other text.
  package static func loginAdvice(for text: String) -> String? {
    guard let host = Self.host(of: text) else { return nil }
    if let url = Self.myDomain(of: host) {
      return "\(host) serves pages to browsers and takes no logins of programs; use \(url)"
    }
    guard !Self.takesLogins(host) else {
      return Self.isOrigin(text) ? nil : "expected only scheme and host: https://\(host)"
    }
    guard Self.domains.contains(where: { host.hasSuffix($0) || host == $0.dropFirst() }) else {
      return nil
    }
    return "\(host) is not the host of an org; use the org's My Domain URL, "
      + "https://<name>.my.salesforce.com (Setup > My Domain)"
  }

  /// Whether a URL names an Experience Cloud site, where its own users may log in by JWT.
  package static func isSite(_ text: String) -> Bool {
    Self.host(of: text)?.hasSuffix(".my.site.com") ?? false
  }

  /// As `loginAdvice`, for the URL of an org's API, which may be a host such as `na123.salesforce.com`.
  package static func instanceAdvice(for text: String) -> String? {
    guard let host = Self.host(of: text), let url = Self.myDomain(of: host) else { return nil }
    return "\(host) serves pages to browsers and no API; use \(url)"
  }

  /// What to add to the advice about a redirect.
  ///
  /// - Parameter target: a host.
  static func redirectAdvice(from url: String, to target: String) -> String {
    let source = Self.host(of: url) ?? ""
    if target != source, target.hasSuffix(".my.salesforce.com") {
      return ", https://\(target)"
    }
    let known = Self.myDomain(of: source) ?? Self.myDomain(of: target)
    return
      ", \(known ?? "https://<name>.my.salesforce.com") (the answer redirects to \(target), and "
      + "a login is sent to no other host)"
  }

  /// The My Domain URL that belongs to a host of pages; nil for other hosts, and where the name is unknown.
  static func myDomain(of host: String) -> String? {
    if host.hasSuffix(".my.salesforce.com") {
      // Before enhanced domains, the host could name the instance: `acme.na45.my.salesforce.com`.
      let labels = host.split(separator: ".").dropLast(3)
      guard labels.count == 2, let instance = labels.last, Self.isInstance(instance) else {
        return nil
      }
      return Self.url(name: labels[0], label: nil)
    }
    guard let page = Self.pages.first(where: { host.hasSuffix($0.suffix) }) else { return nil }
    let labels = host.dropLast(page.suffix.utf8.count).split(separator: ".")
    guard var name = labels.first, labels.count <= 2 else { return nil }
    if page.hasPackage {
      guard let end = name.ranges(of: "--").last else { return nil }
      name = name[..<end.lowerBound]
    }
    guard labels.count == 2 else { return Self.url(name: name, label: nil) }
    if Self.partitions.contains(labels[1]) { return Self.url(name: name, label: labels[1]) }
    return Self.isInstance(labels[1]) ? Self.url(name: name, label: nil) : nil
  }

  /// - Parameter label: of the partition; nil when the host names none.
  private static func url(name: Substring, label: Substring?) -> String? {
    guard !name.isEmpty, !Self.isInstance(name) else { return nil }
    // The name of a sandbox follows two hyphens. A My Domain name has no two hyphens in a row.
    let label = label ?? (name.contains("--") ? "sandbox" : nil)
    return "https://\(name)\(label.map { ".\($0)" } ?? "").my.salesforce.com"
  }

  private static func takesLogins(_ host: String) -> Bool {
    ["login.salesforce.com", "test.salesforce.com"].contains(host)
      || host.hasSuffix(".my.salesforce.com") || host.hasSuffix(".pc-rnd.salesforce.com")
  }

  /// `na123`, `cs45`, `swe12s`.
  private static func isInstance(_ label: Substring) -> Bool {
    let number = label.drop { $0.isLetter }
    return Self.instances.contains(label[..<number.startIndex])
      && !number.prefix { $0.isNumber }.isEmpty && number.drop { $0.isNumber }.count <= 1
  }

  /// Whether a text is a scheme and a host, perhaps with a port and one slash.
  private static func isOrigin(_ text: String) -> Bool {
    guard let scheme = text.firstRange(of: "://") else { return false }
    let rest = text[scheme.upperBound...].drop { !"/?#".contains($0) }
    return rest.isEmpty || rest == "/"
  }

  /// The host of a URL, or of what a browser shows of one, in lower case; nil when there is none.
  static func host(of text: String) -> String? {
    let text = text.lowercased().filter { !$0.isWhitespace }
    let rest =
      text.hasPrefix("//")
      ? text.dropFirst(2) : text.firstRange(of: "://").map { text[$0.upperBound...] } ?? text[...]
    let authority = rest.prefix { !"/?#".contains($0) }
    var host = authority.prefix { $0 != ":" }
    if host.hasSuffix(".") { host.removeLast() }
    guard !host.isEmpty, host.contains("."), host.utf8.count <= 253,
      host.utf8.allSatisfy({ byte in
        (0x61...0x7a).contains(byte) || (0x30...0x39).contains(byte) || byte == 0x2d || byte == 0x2e
      })
    else { return nil }
    return String(host)
  }
}
