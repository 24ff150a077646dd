/// The name of an invented company, which no other company of the org has.
struct CompanyName {
  let text: String
  /// In addresses of e-mail and web sites.
  let slug: String

  init(number: Int, industry: SalesCatalogue.Industry, form: String) {
    let companies = SalesCatalogue.companies
    let stem = companies[number % companies.count]
    let round = number / companies.count
    let word = industry.words[round % industry.words.count]
    // The same stem comes again with another word, then with a number.
    let suffix = round < industry.words.count ? "" : " \(round / industry.words.count + 1)"
    self.text = "\(stem) \(word)\(suffix) \(form)"
    self.slug = Self.slug("\(stem)-\(word)\(suffix)")
  }

  /// Lower-case ASCII letters, digits and hyphens, as in host names.
  static func slug(_ text: String) -> String {
    var slug = ""
    for character in text.lowercased() {
      switch character {
      case "a"..."z", "0"..."9", "-": slug.append(character)
      case "ä": slug += "ae"
      case "ö": slug += "oe"
      case "ü": slug += "ue"
      case "ß": slug += "ss"
      case "á", "ã", "â", "ą": slug += "a"
      case "é", "è", "ê", "ë", "ę": slug += "e"
      case "í", "î", "ï": slug += "i"
      case "ó", "ô": slug += "o"
      case "ú", "û": slug += "u"
      case "ç", "ć": slug += "c"
      case "ł": slug += "l"
      case "ñ", "ń": slug += "n"
      case "ś": slug += "s"
      case "ź", "ż": slug += "z"
      case " ": slug += "-"
      default: break
      }
    }
    return slug
  }
}
