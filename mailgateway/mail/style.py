"""The one look of mails: a style sheet for light and dark, written into the elements as programs need it.

Rules that depend on the reader's screen (dark, narrow) stay in a ``<style>`` element, of less than the 8 kB
that Gmail reads.
"""


def inlined(page: str) -> str:
    """The page with its style sheet written into the elements; fetches nothing."""
    import css_inline  # noqa: PLC0415 - not at the start of the service

    return css_inline.CSSInliner(
        load_remote_stylesheets=False, keep_style_tags=False, keep_at_rules=True
    ).inline(page)


STYLE = """
:root { color-scheme: light dark; }
body { margin: 0; padding: 0; background: #f7f7f5; color: #1c1d20; font-size: 16px; line-height: 1.5;
  font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
  -webkit-text-size-adjust: 100%; }
.preheader { display: none; max-height: 0; overflow: hidden; mso-hide: all; }
.page { width: 100%; background: #f7f7f5; border-collapse: collapse; }
.around { padding: 24px 12px; }
.card { width: 100%; max-width: 640px; margin: 0 auto; background: #ffffff; border: 1px solid #e3e2dd;
  border-radius: 8px; border-collapse: separate; border-spacing: 0; table-layout: fixed; }
.inner { padding: 24px; overflow-wrap: anywhere; word-break: break-word; color: #1c1d20; text-align: left; }
.who { margin: 0 0 8px; color: #5d6068; font-size: 14px; line-height: 1.5; }
.needs { color: #b3261e; } .done { color: #2458c6; } .news { color: #1b7f4d; }
.state { font-weight: 600; }
h1 { margin: 0 0 16px; font-size: 22px; line-height: 1.3; font-weight: 600; letter-spacing: -0.01em; }
h2 { margin: 0 0 4px; font-size: 17px; line-height: 1.35; font-weight: 600; }
h3 { margin: 0 0 8px; font-size: 16px; line-height: 1.4; font-weight: 600; }
h4 { margin: 0 0 8px; font-size: 16px; line-height: 1.4; font-weight: 600; font-style: italic; }
p, ul, ol, pre, blockquote, .wide { margin: 0 0 12px; }
ul, ol { padding-left: 24px; }
li { margin: 0 0 4px; }
a { color: #2458c6; text-underline-offset: 2px; }
img { max-width: 100%; height: auto; border: 1px solid #e3e2dd; border-radius: 8px; }
.label { margin: 0 0 4px; color: #5d6068; font-size: 13px; }
.said { margin: 0 0 20px; padding: 2px 0 2px 14px; border-left: 3px solid #c9c8c2; }
.said > :last-child, .foot > :last-child, .inner > p:last-child { margin-bottom: 0; }
.host { color: #5d6068; font-size: 14px; }
.options { width: 100%; border-collapse: separate; border-spacing: 0; table-layout: fixed; margin: 0 0 4px; }
.gap { padding: 0 0 8px; }
.option { display: block; padding: 12px 16px; min-height: 24px; border: 1px solid #8a8d94; border-radius: 8px;
  color: #1c1d20; text-decoration: none; }
.pick { color: #2458c6; font-weight: 600; }
.mark { color: #5d6068; font-size: 14px; }
.more { color: #5d6068; font-size: 15px; }
.or { margin: 0 0 16px; color: #5d6068; font-size: 15px; }
.aside { margin: 0 0 12px; }
.button { display: inline-block; padding: 10px 0; min-height: 24px; font-weight: 600; }
.item { margin: 0 0 20px; padding: 0 0 4px; }
summary { padding: 10px 0; min-height: 24px; color: #2458c6; font-weight: 600; cursor: pointer; }
code, pre { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace;
  font-size: 14px; }
pre { overflow-x: auto; padding: 12px; background: #f7f7f5; border: 1px solid #e3e2dd; border-radius: 8px;
  line-height: 1.45; white-space: pre; overflow-wrap: normal; word-break: normal; }
blockquote { padding-left: 12px; border-left: 1px solid #8a8d94; color: #5d6068; }
.wide { overflow-x: auto; }
.wide table { border-collapse: collapse; font-size: 15px; overflow-wrap: normal; word-break: normal; }
th, .wide td { border: 1px solid #e3e2dd; padding: 6px 10px; text-align: left; }
hr { border: 0; border-top: 1px solid #e3e2dd; margin: 0 0 12px; }
.foot { margin: 4px 0 0; padding: 16px 0 0; border-top: 1px solid #e3e2dd; color: #5d6068; font-size: 14px; }
.foot p { margin: 0 0 4px; }
.kc { color: #5d6068; } .kk { color: #7a3ea8; } .ks { color: #1a6b43; } .kn { color: #8f4700; }
.kf { color: #2458c6; } .kd { color: #b3261e; } .ki { color: #186f44; }
@media (max-width: 480px) {
  .around { padding: 0 !important; }
  .card { border-width: 0 0 1px !important; border-radius: 0 !important; }
  .inner { padding: 20px 16px !important; }
  h1 { font-size: 20px !important; }
}
@media (prefers-color-scheme: dark) {
  body, .page { background: #16171a !important; color: #e9eaec !important; }
  .card { background: #1f2125 !important; border-color: #33363c !important; }
  .inner, .option { color: #e9eaec !important; }
  .who, .label, .host, .mark, .more, .or, .foot, blockquote, .kc { color: #a3a7b0 !important; }
  .needs, .kd { color: #ff8a80 !important; }
  .done, .pick, .kf, a, summary { color: #8ab0ff !important; }
  .news, .ki { color: #5fd39a !important; }
  .said { border-color: #4a4e56 !important; }
  .option, blockquote { border-color: #7b7f87 !important; }
  pre, .foot, th, .wide td, img, hr { border-color: #33363c !important; }
  pre { background: #16171a !important; }
  a.option { color: #e9eaec !important; }
  .kk { color: #c9a2f5 !important; } .ks { color: #7fd6a8 !important; } .kn { color: #f0b072 !important; }
}
"""
"""Colours, sizes and spaces; prose breaks anywhere rather than make a phone scroll sideways."""
