"""Throw damaged mails at the reading of mail: ``python bench/fuzz.py [COUNT] [SEED]``.

The files of the corpus, cut, joined, repeated and filled with what parsers stumble over.  Whatever is given,
nothing may raise, take longer than half a second, or give text that a table cannot keep.  A number names an
input for ever: ``python bench/fuzz.py --show SEED NUMBER`` writes it to standard output.
"""

import argparse
import random
import sys
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from mailgateway.domain.explain import Context, explain
from mailgateway.domain.judge import judge
from mailgateway.mail.attachments import attachments_of
from mailgateway.mail.inbound import Inbound, is_candidate, read
from mailgateway.mail.own import Own
from tests.corpus.scoring import CASES, context

SLOW = 0.5
"""Seconds of the processor that one mail may take."""

FAULTS_LIMIT = 50

TOKENS = (
    *(
        b"\0",
        b"\r",
        b"\n",
        b"\r\n",
        b"\n\n",
        b"\xff",
        b"\xfe\xff",
        b"\x1b$B",
        b"\x1b(B",
        b"=",
        b"=\n",
        b"=3D",
        b"=?",
    ),
    *(
        b"?=",
        b"=?utf-8?B?",
        b"=?x?Q?=00?=",
        b"--",
        b"-- \n",
        b">",
        b"> ",
        b">>>",
        b"\n> ",
        b"```\n",
        b"<div>",
        b"</div>",
    ),
    *(
        b"<blockquote type=cite>",
        b"</blockquote>",
        b"<!--",
        b"-->",
        b"<style>",
        b"&#x110000;",
        b"&#",
        b"<pre>",
        b"<hr>",
    ),
    *(
        b"\nContent-Type: multipart/mixed; boundary=x\n\n--x\n",
        b"\n--x\n",
        b"\n--x--\n",
        b"charset=utf-7",
        b"+ADw-",
    ),
    *(
        b"\nContent-Transfer-Encoding: base64\n\n",
        b"filename*0*=utf-8''%F0",
        b"message/rfc822",
        b"text/calendar",
    ),
    *(
        b"multipart/report; report-type=delivery-status",
        b"message/delivery-status",
        b"Final-Recipient: rfc822;",
    ),
    *(
        b"On a, b wrote:\n",
        b"wrote:",
        b"From: ",
        b"Subject: ",
        b"\nFrom: x@y\n",
        b"____________\n",
        b":",
        b"\xef\xbb\xbf",
    ),
    *(
        "\u202e".encode(),
        "\u2028".encode(),
        "\ud83d".encode("utf-8", "surrogatepass"),
        "\uff1a".encode(),
        "İ".encode(),
    ),
    *(
        b"begin 644 x\n",
        b"format=flowed; delsp=yes",
        b"\nReceived: x\n",
        b"<x@y>",
        b"(",
        b'"',
        b"\\",
        b";",
        b"%",
        b"'",
    ),
)
"""What parsers stumble over."""


def mutated(seeds: Sequence[bytes], dice: random.Random) -> bytes:
    """One of the seeds, changed in one to eight places."""
    data = bytearray(dice.choice(seeds))
    for _ in range(dice.randint(1, 8)):
        at = dice.randint(0, len(data))
        end = min(len(data), at + dice.choice((1, 1, 2, 8, 60, 500)))
        match dice.randrange(9):
            case 0 if data:
                at = dice.randrange(len(data))
                data[at] = dice.randrange(256)
            case 1:
                del data[at:end]
            case 2:
                data[at:at] = data[at:end] * dice.choice((1, 2, 30))
            case 3:
                data[at:at] = dice.choice(TOKENS)
            case 4:
                data[at:end] = dice.choice(TOKENS)
            case 5:
                data[at:at] = dice.choice(TOKENS) * dice.choice((3, 40, 900))
            case 6:
                other = dice.choice(seeds)
                start = dice.randint(0, len(other))
                data[at:end] = other[start : start + dice.choice((20, 300, 4000))]
            case 7:
                del data[at:]
            case _:
                data[at:end] = bytes(dice.randrange(256) for _ in range(dice.randint(1, 12)))
    return bytes(data[: 256 * 1024])


def fault_of(raw: bytes, own: Own, known: Context) -> str:
    """What is wrong with the reading of this mail, or ''."""
    began = time.process_time()
    try:
        is_candidate(raw[:4096], own)
        judge(raw, own)
        explained = explain(raw, own, known)
        inbound = read(raw)
        if isinstance(inbound, Inbound):
            attachments_of(inbound, own, known.sent_text)
        (explained.text + explained.quoted + explained.address).encode()
    except Exception as error:  # noqa: BLE001 - that nothing is raised is what is tested
        return f"{type(error).__name__}: {error}"
    took = time.process_time() - began
    if "\0" in explained.text + explained.quoted:
        return "NUL in the text"
    return f"took {took:.2f} s" if took > SLOW else ""


def inputs(seed: int) -> tuple[list[bytes], random.Random]:
    """The seeds of a run, and its dice."""
    return [path.read_bytes() for path in sorted(CASES.glob("*.eml"))], random.Random(seed)  # noqa: S311 - the same inputs again


def main() -> int:
    """Run, and say what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", nargs="?", type=int, default=20_000)
    parser.add_argument("seed", nargs="?", type=int, default=1)
    parser.add_argument("--show", nargs=2, type=int, metavar=("SEED", "NUMBER"))
    given = parser.parse_args()
    seeds, dice = inputs(given.show[0] if given.show else given.seed)
    if given.show:
        for _ in range(given.show[1]):
            mutated(seeds, dice)
        sys.stdout.buffer.write(mutated(seeds, dice))
        return 0
    known = Context.from_json(context())
    own = Own(allowed=[known.person])
    faults = 0
    began = time.monotonic()
    for number in range(given.count):
        fault = fault_of(mutated(seeds, dice), own, known)
        if fault:
            faults += 1
            print(f"seed {given.seed}, input {number}: {fault}", flush=True)
            if faults == FAULTS_LIMIT:
                print("too many faults")
                return 1
    rate = given.count / (time.monotonic() - began)
    print(f"{given.count} inputs, {faults} faults, {rate:.0f} a second", flush=True)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
