"""Mails in Chromium, on a phone and on a desktop, light and dark: they fit, can be read and tapped."""

from itertools import product
from typing import Any

from attrs import evolve
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.mail.letter import Letter, Offer
from tests.mail.browser import browser, page_of, shown
from tests.mail.letters import ALL, DECISION, NOTIFICATION

HARD = evolve(
    DECISION,
    subject="Shall-I-use-" + "averyveryverylongwordwithoutanyblank" * 4 + "?",
    options=(*DECISION.options, Offer(label="x" * 200, description="y" * 300, impact="z" * 300)),
    text="w" * 400
    + "\n\n```python\n"
    + "code = 1  # "
    + "long " * 70
    + "\n```\n\n| "
    + "a" * 90
    + " | b |\n|-|-|\n| 1 | 2 |\n\n"
    + "> quoted\n\n- item\n\n# Head\n\n#### Small\n\n[link](https://example.org/"
    + "p" * 200
    + ")",
)
CODE = evolve(
    NOTIFICATION,
    attachments=(),
    text="""\
```python
@deco
def f(x: int = 3) -> str:
    # note
    return 'x' if x else None
```

```diff
-a
+b
```

```bash
$ echo "x" | grep -v y; export A=1
```

```html
<a href="x">y</a> <!-- c -->
```

> quoted `code`
""",
)
LETTERS: dict[str, Letter] = {**ALL, "hard": HARD, "code": CODE}

UNFOLD = "document.querySelectorAll('details').forEach(each => each.open = true)"

OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"

SMALL_TARGETS = """
[...document.querySelectorAll("a.option, a.button, summary")]
  .map(each => [each.innerText.slice(0, 40), each.getBoundingClientRect().height])
  .filter(([, height]) => height < 44)
"""

PALE_WORDS = """
(() => {
  const light = color => {
    const [r, g, b] = color.match(/[0-9.]+/g).map(Number).slice(0, 3).map(value => value / 255)
      .map(value => value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = element => {
    for (let at = element; at; at = at.parentElement) {
      const color = getComputedStyle(at).backgroundColor;
      if (color !== "rgba(0, 0, 0, 0)") return color;
    }
    return "rgb(255, 255, 255)";
  };
  const ratio = (one, other) => {
    const [low, high] = [light(one), light(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  const pale = [];
  const words = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let seen = 0;
  while (words.nextNode()) {
    const element = words.currentNode.parentElement;
    if (!words.currentNode.data.trim() || getComputedStyle(element).display === "none") continue;
    seen += 1;
    const found = ratio(getComputedStyle(element).color, ground(element));
    if (found < 4.5) pale.push([words.currentNode.data.trim().slice(0, 30), found]);
  }
  for (const option of document.querySelectorAll(".option")) {
    const found = ratio(getComputedStyle(option).borderTopColor, ground(option));
    if (found < 3) pale.push(["border", found]);
  }
  return [seen, pale];
})()
"""


class BrowserTests(SynchronousTestCase):
    """Every kind, and letters that are hard to show."""

    def test_they_fit_and_can_be_read_and_tapped(self) -> None:
        """No sideways scrolling, contrast of 4.5 (3 for borders), targets of 44 px; folded parts opened."""
        pages = {name: page_of(letter) for name, letter in LETTERS.items()}
        with browser() as opened:
            for width, scheme in product((360, 1200), ("light", "dark")):
                with shown(opened, "", width, scheme) as tab:
                    for name, page in pages.items():
                        tab.set_content(page)
                        tab.evaluate(UNFOLD)
                        self.look(tab, f"{name} at {width} px, {scheme}")

    def look(self, tab: Any, what: str) -> None:
        """Measure one page."""
        self.assertLessEqual(tab.evaluate(OVERFLOW), 0, what)
        self.assertEqual(tab.evaluate(SMALL_TARGETS), [], what)
        seen, pale = tab.evaluate(PALE_WORDS)
        self.assertGreater(seen, 1, what)
        self.assertEqual(pale, [], what)

    def test_the_measures_can_fail(self) -> None:
        """A page that is wrong in each way is found wrong in each way."""
        page = (
            '<body style="background:#fff"><p style="color:#999;width:900px">pale</p>'
            '<a class="option" style="border:1px solid #eee">x</a></body>'
        )
        with browser() as opened, shown(opened, page, 360, "light") as tab:
            self.assertGreater(tab.evaluate(OVERFLOW), 0)
            self.assertEqual(len(tab.evaluate(SMALL_TARGETS)), 1)
            self.assertEqual([words for words, _ in tab.evaluate(PALE_WORDS)[1]], ["pale", "border"])

    def test_dark_is_dark_and_a_fold_opens(self) -> None:
        """The rules for dark screens survive; what is folded is shown by a tap."""
        page = page_of(DECISION)
        with browser() as opened:
            grounds = []
            for scheme in ("light", "dark"):
                with shown(opened, page, 360, scheme) as tab:
                    grounds.append(
                        tab.evaluate("getComputedStyle(document.querySelector('.card')).backgroundColor")
                    )
                    before = tab.evaluate("document.body.scrollHeight")
                    tab.click("summary")
                    self.assertGreater(tab.evaluate("document.body.scrollHeight"), before + 200)
            self.assertEqual(grounds, ["rgb(255, 255, 255)", "rgb(31, 33, 37)"])
