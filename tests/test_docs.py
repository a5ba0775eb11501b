"""The documents say what the code does: settings, verbs, verdicts, links, and all that can be copied.

Routes and codes of ``docs/api.md`` are held in ``tests.http.test_table``, the walk in
``tests.acceptance.test_walk``.
"""

import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

import click
from attrs import AttrsInstance, fields
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.cli.main import VERBS, command
from mailgateway.errors import ConfigError
from mailgateway.mail.verdict import Verdict
from mailgateway.providers import offers
from mailgateway.settings import Settings, parse
from mailgateway.settings.rules import SECTIONS
from mailgateway.settings.values import Key, OAuth
from mailgateway.settings.written import AccountTable, ServerTable

TOP = Path(__file__).parent.parent
DOCS = TOP / "docs"
PAGES = [TOP / "README.md", *sorted(DOCS.rglob("*.md"))]
UNITS = sorted((TOP / "deploy" / "systemd").iterdir())

BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"(?:^(?: {4}| {7}).*\n)+", re.MULTILINE)
SHARED = frozenset({"--json", "--config", "--session", "--help"})
"""Options of nearly every verb, which are told once."""


def names_of_settings() -> set[str]:
    """Every setting as it is written; names that a person gives are NAME."""
    tables: dict[str, type[AttrsInstance]] = {
        **SECTIONS,
        "accounts.NAME": AccountTable,
        "accounts.NAME.imap": ServerTable,
        "oauth.NAME": OAuth,
        "keys.NAME": Key,
    }
    return {f"{path}.{field.name}" for path, table in tables.items() for field in fields(table)}


def commands_of(
    group: click.Group = command, words: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every verb with the words that name it, those of groups included."""
    context = click.Context(group)
    for name in group.list_commands(context):
        verb = group.get_command(context, name)
        assert verb is not None
        if isinstance(verb, click.Group):
            yield from commands_of(verb, (*words, name))
        if not isinstance(verb, click.Group) or verb.invoke_without_command:
            yield (*words, name), verb


def typed(page: Path) -> Iterator[list[str]]:
    """The commands of ours that a page or a unit tells to type, as words."""
    text = page.read_text(encoding="utf-8")
    lines = [line for found in INDENTED.findall(text) for line in found.splitlines()]
    lines += [line for _, kind, body in BLOCK.findall(text) if kind != "toml" for line in body.splitlines()]
    lines += re.findall(r"`(mailgateway [^`]*)`", text)
    for line in lines:
        if re.match(r"\s*mailgateway( [a-z-]|$)", line):
            yield shlex.split(line)


def settings_in(page: Path) -> Iterator[str]:
    """The TOML of a page: fenced as such, or indented and beginning with a table."""
    text = page.read_text(encoding="utf-8")
    for indent, kind, body in BLOCK.findall(text):
        if kind == "toml":
            yield "\n".join(line.removeprefix(indent) for line in body.splitlines())
    for body in INDENTED.findall(text):
        if body.lstrip().startswith("[") and "=" in body:
            yield "\n".join(line.strip() for line in body.splitlines())


def checked(text: str) -> Settings:
    """Parse settings; a fragment is completed with what every file needs."""
    given = tomllib.loads(text)
    account = given.setdefault("accounts", {}).setdefault("main", {})
    whole: Mapping[str, object] = {
        **given,
        "people": {"allowed": ["robin@example.org"], **given.get("people", {})},
        "accounts": {
            **given["accounts"],
            "main": {
                "address": "agent@example.org",
                "watch": ["INBOX"],
                **account,
                "imap": {
                    "host": "imap.example.org",
                    **account.get("imap", {"password_file": "mail.password"}),
                },
                "smtp": {"host": "smtp.example.org", **account.get("smtp", {})},
            },
        },
    }
    return parse(whole, {"HOME": "/home/robin"}, source=Path("/etc/mailgateway/config.toml"))


class SettingsTests(SynchronousTestCase):
    """``docs/settings.md`` and every piece of a settings file."""

    def test_every_setting_has_its_row_and_every_row_its_setting(self) -> None:
        """Nothing is left out, nothing is promised that is not read."""
        text = (DOCS / "settings.md").read_text(encoding="utf-8")
        rows = re.findall(r"^\| `((?:\w+\.)+\w+)` \|", text, re.MULTILINE)
        self.assertEqual(set(rows), names_of_settings())
        self.assertEqual(len(rows), len(set(rows)))

    def test_the_defaults_are_those_of_the_code(self) -> None:
        """Where the column holds a plain value, it is the value of the class."""
        text = (DOCS / "settings.md").read_text(encoding="utf-8")
        compared = 0
        for name, default in re.findall(r"^\| `([\w.]+)` \| `([^`]*)` \|", text, re.MULTILINE):
            section, _, key = name.rpartition(".")
            table = {**SECTIONS, "accounts.NAME": AccountTable, "accounts.NAME.imap": ServerTable}.get(
                section
            ) or {"oauth.NAME": OAuth, "keys.NAME": Key}[section]
            value = getattr(fields(table), key).default
            told = tomllib.loads(f"value = {default}")["value"]
            self.assertEqual(told, list(value) if isinstance(value, tuple) else value, name)
            compared += 1
        self.assertGreater(compared, 15)

    def test_all_that_can_be_copied_is_read(self) -> None:
        """Each TOML in README and documents parses, and warns of nothing that it says itself."""
        found = [(page.name, text) for page in PAGES for text in settings_in(page)]
        for name, text in found:
            try:
                settings = checked(text)
            except ConfigError as error:
                self.fail(f"{name}: {error}")
            if "trusted_authserv_ids" in text:
                self.assertEqual(settings.warnings, (), name)
        self.assertEqual(
            {name for name, _ in found} & {"README.md", "settings.md", "operations.md"},
            {
                "README.md",
                "settings.md",
                "operations.md",
            },
        )

    def test_no_registration_is_anybodys(self) -> None:
        """No client id comes along, ours or another program's: what stands there is a sentence or a name."""
        for text in settings_in(DOCS / "oauth.md"):
            for oauth in checked(text).oauth.values():
                self.assertRegex(oauth.client_id, r"^the-(application|client)-id-")
        shapes = (
            r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|[0-9]{6,}-?[a-z0-9]*\.apps\.googleusercontent\.com"
        )
        for path in sorted((TOP / "mailgateway").rglob("*")):
            if path.suffix in {".py", ".toml", ".md", ".json", ".html"}:
                self.assertIsNone(re.search(shapes, path.read_text(encoding="utf-8")), path)
        for offer in offers():
            self.assertNotIn("client_id", repr(offer.oauth), offer.name)

    def test_settings_that_are_named_elsewhere_exist(self) -> None:
        """``section.key`` in running text is a setting."""
        known = names_of_settings()
        sections = "|".join(SECTIONS)
        for page in [*PAGES, *UNITS]:
            for name in re.findall(rf"`((?:{sections})\.[a-z_]+)\b", page.read_text(encoding="utf-8")):
                self.assertIn(name, known, page.name)


class CommandTests(SynchronousTestCase):
    """The verbs and their options."""

    def test_every_option_is_documented(self) -> None:
        """The line of each verb in ``docs/operations.md`` names its options."""
        lines = (DOCS / "operations.md").read_text(encoding="utf-8").splitlines()
        for words, verb in commands_of():
            told = "\n".join(line for line in lines if f"`mailgateway {' '.join(words)}" in line)
            self.assertTrue(told, words)
            for parameter in verb.params:
                if isinstance(parameter, click.Option):
                    for option in set(parameter.opts) - SHARED:
                        self.assertRegex(told, rf"{option}\b", words)

    def test_what_is_to_be_typed_can_be_typed(self) -> None:
        """Each command of ours in the documents and the units names a verb and its options."""
        known = dict(commands_of())
        seen = 0
        for page in [*PAGES, *UNITS]:
            for _, first, *rest in (words for words in typed(page) if len(words) > 1):
                seen += 1
                if first.startswith("-"):
                    self.assertIn(first, {"--version", "--help"}, page.name)
                    continue
                self.assertIn(first, VERBS, page.name)
                verb = known.get((first,)) or known.get((first, rest[0] if rest else ""))
                assert verb is not None, (page.name, first, rest)
                options = {"--help", *(option for each in verb.params for option in each.opts)}
                given = {option for word in rest for option in re.findall(r"^\[?(--[a-z-]+)", word)}
                self.assertEqual(given - options, set(), f"{page.name}: {first}")
        self.assertGreater(seen, 15)

    def test_variables_that_the_command_reads(self) -> None:
        """Each has its row in ``docs/settings.md``, and each row its reader."""
        read = set()
        for path in (TOP / "mailgateway").rglob("*.py"):
            if path.parts[-2] in {"cli", "settings"}:  # with "__" it is a setting
                read |= set(re.findall(r"\"(MAILGATEWAY(?:_[A-Z]+)+)\"", path.read_text(encoding="utf-8")))
        text = (DOCS / "settings.md").read_text(encoding="utf-8")
        self.assertEqual(read, set(re.findall(r"^\| `(MAILGATEWAY_\w+)` \|", text, re.MULTILINE)))


class WordTests(SynchronousTestCase):
    """Verdicts, links, and what a document must not say."""

    def test_every_verdict_is_explained(self) -> None:
        """And no other."""
        text = (DOCS / "operations.md").read_text(encoding="utf-8")
        table = text.partition("| verdict |")[2].partition("\n\n")[0]
        self.assertEqual(
            re.findall(r"^\| `([\w-]+)` \|", table, re.MULTILINE), [each.value for each in Verdict]
        )

    def test_links_lead_somewhere(self) -> None:
        """Each relative link names a file or folder, and its heading if it says one."""
        seen = 0
        for page in PAGES:
            text = re.sub(r"`[^`\n]*`", "", page.read_text(encoding="utf-8"))
            for target in re.findall(r"\]\(([^)\s]+)\)", text):
                if "://" in target:
                    continue
                path, _, anchor = target.partition("#")
                place = (page.parent / path).resolve() if path else page
                self.assertTrue(place.exists(), f"{page.name}: {target}")
                if anchor:
                    heads = re.findall(r"^#+ (.+)$", place.read_text(encoding="utf-8"), re.MULTILINE)
                    slugs = {re.sub(r"[^\w -]", "", head).lower().replace(" ", "-") for head in heads}
                    self.assertIn(anchor, slugs, f"{page.name}: {target}")
                seen += 1
        self.assertGreater(seen, 10)

    def test_files_that_are_named_exist(self) -> None:
        """A path of the source in a document is there."""
        for page in PAGES:
            for name in re.findall(
                r"`((?:tests|docs|bench|deploy)/[\w./-]+)`", page.read_text(encoding="utf-8")
            ):
                self.assertTrue((TOP / name).exists(), f"{page.name}: {name}")
