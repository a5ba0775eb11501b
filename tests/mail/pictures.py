"""Make the pictures of mails in ``docs/images``: ``python -m tests.mail.pictures [FOLDER]``.

One picture of each kind: on a phone, light and dark, and on a desktop, without a public address.  With a
folder, those of all kinds, as they are.
"""

import sys
from base64 import b64encode
from pathlib import Path
from typing import Any

from attrs import evolve

from mailgateway.mail.letter import Letter
from tests.mail.browser import browser, page_of, shown
from tests.mail.letters import ALL, FOUR

FOLDER = Path(__file__).parent.parent.parent / "docs" / "images"
SCREENS = ((360, "light"), (360, "dark"), (720, "light"))
GROUND = "#d9d8d3"


def picture(opened: Any, letter: Letter) -> bytes:
    """The letter on all screens, side by side, as a PNG."""
    page = page_of(letter)
    shots = []
    for width, scheme in SCREENS:
        with shown(opened, page, width, scheme) as tab:
            tab.set_viewport_size({"width": width, "height": 10})
            data = b64encode(tab.screenshot(full_page=True)).decode()
            shots.append(
                f'<img style="width:{width}px;border-radius:8px" src="data:image/png;base64,{data}">'
            )
    style = f"margin:0;padding:20px;display:flex;gap:20px;align-items:flex-start;background:{GROUND}"
    width = sum(width for width, _ in SCREENS) + 80
    context = opened.new_context(
        viewport={"width": width, "height": 10}, device_scale_factor=1.5, offline=True
    )
    try:
        tab = context.new_page()
        tab.set_content(f'<body style="{style}">{"".join(shots)}</body>')
        made: bytes = tab.screenshot(full_page=True)
    finally:
        context.close()
    return made


def main(folder: Path, letters: dict[str, Letter]) -> None:
    """Write them all."""
    with browser() as opened:
        for name, letter in letters.items():
            (folder / f"mail-{name}.png").write_bytes(picture(opened, letter))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]), ALL)
    else:
        main(FOLDER, {name: evolve(letter, card_url="") for name, letter in FOUR.items()})
