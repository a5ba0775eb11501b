"""Mails of the corpus through a real Dovecot: what the running service does, ``explain`` says beforehand."""

import email.utils
import io
import random
import re
import time
from collections import Counter
from pathlib import Path

from attrs import frozen

from mailgateway.client.answers import Fate
from mailgateway.domain.explain import Context
from mailgateway.operator.explain import explain_files
from mailgateway.settings import load as load_settings
from tests.acceptance.harness import AGENT, RESULTS, ROBIN, Asked, WorldTestCase
from tests.corpus.scoring import Case, context, load
from tests.corpus.synthetic import Gateway
from tests.corpus.vary import CannotVaryError, change_of, varied
from tests.fakes.dovecot import eventually

SAMPLE = 40
NAME = "Coding agents"
REFUSED = 6
"""Mails of the sample that concern us, are no person's words, and are shown with the reason."""


@frozen
class Sent:
    """One mail that is delivered, under a subject of its own."""

    case: Case
    path: Path
    raw: bytes
    message_id: str
    mark: str


class SampleTests(WorldTestCase):
    """Forty mails, some of each group."""

    def make_settings(self) -> dict[str, dict[str, object]]:
        """The agents have a name, which programs write into attributions."""
        settings = super().make_settings()
        settings["accounts.main"]["from_name"] = NAME
        return settings

    def tell(self) -> Asked:
        """A session's notification, which any number of mails may answer."""
        self.gateway.client.ping("session-1", "instance-1", title="acceptance")
        sent = self.gateway.client.send(
            "notification", "session-1", "Which database?", "Both work.\n\nShall it be SQLite or PostgreSQL?"
        )
        received = self.sink.wait(lambda mail: mail.mail["Message-ID"] == sent["messageId"])
        return Asked("session-1", "instance-1", received)

    def mails(self, asked: Asked, sent_text: str) -> list[Sent]:
        """The sample, as mails to this gateway that its server vouches for."""
        found: list[Sent] = []
        seen: Counter[str] = Counter()
        dice = random.Random(40)  # noqa: S311 - the same mails again
        for original in load():
            mark = f"case {original.id[:3]}"
            subject = f"{asked.question['Subject']}, {mark}"
            message_id = str(asked.question["Message-ID"])
            gateway = Gateway(NAME, AGENT, message_id, subject, sent_text)
            if seen[original.group] == 2 or len(found) == SAMPLE:
                continue
            try:
                case = varied(original, change_of(context(), gateway, ("Robin Sommer", ROBIN)), dice)
            except CannotVaryError:
                continue
            named = re.search(rb"^Message-ID:\s*(<[^<>\s]+>)", case.raw, re.IGNORECASE | re.MULTILINE)
            if named is None or b"\0" in case.raw:
                continue
            seen[case.group] += 1
            date = email.utils.formatdate(time.time() - len(found)).encode()
            raw = re.sub(
                rb"\r?\n", b"\r\n", re.sub(rb"(?m)^Date: [^\r\n]*", b"Date: " + date, case.raw, count=1)
            )
            raw = raw.replace(b"X-Session-Gateway:", b"X-Mailgateway-Instance:")
            raw = f"Authentication-Results: {RESULTS}\r\n".encode() + raw
            path = self.folder / f"{case.id}.eml"
            path.write_bytes(raw)
            found.append(Sent(case, path, raw, named[1].decode(), mark))
        return found

    def test_the_service_does_what_explain_says(self) -> None:
        """The same words and quotations are delivered, the same verdicts are given."""
        asked = self.tell()
        body = asked.question.get_body(("plain",))
        assert body is not None
        sent_text = str(body.get_content()).replace("\r\n", "\n")
        mails = self.mails(asked, sent_text)
        self.assertEqual(len(mails), SAMPLE)
        settings = load_settings(self.gateway.folder / "mailgateway.toml", {})
        known = Context.from_json({"original_text": sent_text})
        paths = [str(each.path) for each in mails]
        told = dict(zip(paths, explain_files(paths, settings, known, io.BytesIO()), strict=True))
        for each in mails:
            self.dovecot.deliver(AGENT, each.raw, ROBIN)
        accepted = {
            each.message_id: told[str(each.path)]
            for each in mails
            if told[str(each.path)]["sender"] == {"verdict": "accept", "reason": "", "message": ""}
            and told[str(each.path)]["kind"] != "command"
        }
        self.assertGreater(len(accepted), SAMPLE // 2)

        def all_there() -> bool:
            return {str(each["messageId"]) for each in self.gateway.client.pending("session-1")} >= set(
                accepted
            )

        def all_refused() -> list[Fate] | None:
            found = self.fates()
            told_of = [each for each in mails if any(each.mark in fate["subject"] for fate in found)]
            return found if len(told_of) >= len(accepted) + REFUSED else None

        eventually("what explain accepts is delivered", all_there, 30)
        fates = eventually("what it refuses has its fate", all_refused, 30)
        delivered = {each["messageId"]: each for each in self.gateway.client.pending("session-1")}
        commands = {each.message_id for each in mails if told[str(each.path)]["kind"] == "command"}
        self.assertEqual(set(delivered) - commands, set(accepted))
        for message_id, line in accepted.items():
            given = delivered[message_id]
            self.assertEqual(given["body"], line["text"], message_id)
            self.assertEqual(given.get("quoted", ""), line["quoted"], message_id)
        for each in mails:
            verdicts = {fate["verdict"] for fate in fates if each.mark in fate["subject"]}
            if each.message_id not in {*accepted, *commands} and verdicts:
                self.assertEqual(verdicts, {told[str(each.path)]["sender"]["reason"]}, each.case.id)
