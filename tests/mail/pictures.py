"""Make the pictures of mails in ``docs/images``: ``python -m tests.mail.pictures [FOLDER]``.

Each kind on a phone and on a desktop, light and dark side by side as people see them.
"""

import sys
from pathlib import Path

from tests.mail.browser import browser, page_of, shown
from tests.mail.letters import ALL, FOUR

FOLDER = Path(__file__).parent.parent.parent / "docs" / "images"


def main(folder: Path) -> None:
    """Write them all."""
    with browser() as opened:
        for name, letter in (ALL if len(sys.argv) > 1 else FOUR).items():
            page = page_of(letter)
            for width, scheme, what in (
                (360, "light", "phone"),
                (360, "dark", "phone-dark"),
                (900, "light", "desktop"),
                (900, "dark", "desktop-dark"),
            ):
                with shown(opened, page, width, scheme) as tab:
                    tab.screenshot(path=folder / f"mail-{name}-{what}.png", full_page=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
