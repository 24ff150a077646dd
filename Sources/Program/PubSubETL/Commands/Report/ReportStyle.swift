internal import Bytes
import Cryptography

/// How the report looks, and the policy that lets a browser apply it and load nothing.
enum ReportStyle {
  /// The only style of the page, which its policy names by hash.
  static var policy: String {
    let hash = Self.sheet.withUTF8Buffer { SHA256.hash(of: UnsafeRawBufferPointer($0)) }
    var base64 = ByteBuffer()
    hash.bytes.withUnsafeBufferPointer { base64.appendBase64($0) }
    let text = String(decoding: base64.bytes, as: UTF8.self)
    return "default-src 'none'; style-src 'sha256-\(text)'; base-uri 'none'; form-action 'none'"
  }

  /// The colours have a contrast of 4.5 and more against their background, in both schemes.
  static let sheet: StaticString = """
    :root { color-scheme: light dark; --text: #1b1f24; --soft: #57606a; --back: #ffffff;
      --panel: #f6f8fa; --line: #d0d7de; --bar: #0b62c4; --good: #116329; --bad: #b3261e; }
    @media (prefers-color-scheme: dark) { :root { --text: #e6edf3; --soft: #9aa5b1;
      --back: #0d1117; --panel: #161b22; --line: #3d444d; --bar: #58a6ff; --good: #56d364;
      --bad: #ff8a80; } }
    * { box-sizing: border-box; }
    body { margin: 0 auto; max-width: 84rem; padding: 1rem; background: var(--back);
      color: var(--text); font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
    h1 { font-size: 1.6rem; line-height: 1.2; margin: 0 0 .5rem; }
    h2 { font-size: 1.2rem; margin: 2rem 0 .5rem; padding-bottom: .25rem;
      border-bottom: 1px solid var(--line); }
    p { margin: .5rem 0; }
    a { color: var(--bar); }
    :focus-visible { outline: 3px solid var(--bar); outline-offset: 2px; }
    nav ul { display: flex; flex-wrap: wrap; gap: .25rem 1rem; list-style: none; margin: .5rem 0;
      padding: 0; }
    .good, .bad { border-left: .3rem solid var(--good); padding-left: .6rem; }
    .bad { border-color: var(--bad); }
    .none, figcaption, caption { color: var(--soft); }
    .tiles { display: grid; grid-template-columns: repeat(auto-fill, minmax(9.5rem, 1fr));
      gap: .5rem; margin: 1rem 0 0; }
    .tiles div { background: var(--panel); border: 1px solid var(--line); border-radius: .4rem;
      padding: .5rem .75rem; }
    dt { color: var(--soft); font-size: .875rem; }
    dd { margin: 0; font-size: 1.15rem; font-variant-numeric: tabular-nums; }
    .charts { display: grid; gap: 1rem;
      grid-template-columns: repeat(auto-fill, minmax(min(100%, 20rem), 1fr)); }
    figure { margin: 0; min-width: 0; padding: .75rem; background: var(--panel);
      border: 1px solid var(--line); border-radius: .4rem; }
    figcaption strong { color: var(--text); }
    svg { display: block; width: 100%; height: auto; margin: .5rem 0; }
    svg text { fill: var(--soft); font-size: 11px; }
    .bar { fill: var(--bar); }
    .bad-bar { fill: var(--bad); }
    .axis { stroke: var(--soft); }
    summary { cursor: pointer; }
    .scroll { overflow-x: auto; margin: .75rem 0; }
    table { border-collapse: collapse; font-size: .9rem; }
    figure table { width: 100%; }
    .scroll table { min-width: 40rem; width: 100%; }
    .scroll th, .scroll td { overflow-wrap: break-word; max-width: 24rem; }
    caption { text-align: left; padding-bottom: .25rem; }
    th, td { border-bottom: 1px solid var(--line); padding: .3rem .75rem .3rem 0;
      text-align: left; vertical-align: top; unicode-bidi: isolate; }
    tbody th { font-weight: 500; }
    th.number, td.number { text-align: right; font-variant-numeric: tabular-nums;
      white-space: nowrap; }
    pre { background: var(--panel); border: 1px solid var(--line); border-radius: .4rem;
      padding: .75rem; white-space: pre-wrap; font-size: .85rem; }
    @media print { details { display: none; } }
    """
}
