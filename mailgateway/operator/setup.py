"""``setup``: from a mail address to settings that the service starts with.

Policy: nothing is written before everything is known; what is written is complete.  What people are told
comes before the question that it matters for.  A secret goes from the terminal into its own file, and
nowhere else.  The dialogue is blocking: each search or check runs on a reactor of its own in between.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from attrs import define, evolve, field, frozen

from mailgateway.domain.discovery import Choice
from mailgateway.errors import ConfigError, MailgatewayError, Problem, Refusal
from mailgateway.operator.findings import Finding, State, failed
from mailgateway.operator.installing import Installation, Installed
from mailgateway.operator.plan import Plan, SecretPlan, text_of, with_facts
from mailgateway.operator.running import run
from mailgateway.operator.secret_answers import SecretAnswers
from mailgateway.operator.servers import Servers
from mailgateway.operator.settings_file import (
    FOR_ALL,
    OWNER_ONLY,
    Written,
    judge,
    place_for,
    write_settings,
)
from mailgateway.operator.wishes import Progress, Talk, Wishes
from mailgateway.secrets import Credential, PasswordFile
from mailgateway.settings import Settings
from mailgateway.settings.tables import ADDRESS, Reading, Wrong, tables

CHECK_SECONDS: Final = 120.0

_PEOPLE: Final = """
Replies are heard from addresses that you name, and each must prove where it comes from.
If you name {address} itself, the agents and you share one mailbox: a reply is then
believed when its copy lies in the Sent folder. A mailbox of the agents' own is safer."""


@frozen(kw_only=True)
class Outcome:
    """What was done; ``text`` is the settings file, which holds no secret."""

    path: Path
    text: str
    plan: Plan
    choice: Choice
    written: Written | None = None
    findings: tuple[Finding, ...] = ()
    installed: Installed | None = None
    custom_place: bool = False
    """Whether the settings are where nobody looks without being told."""

    @property
    def ok(self) -> bool:
        """Whether nothing failed."""
        return not failed(self.findings)


@define(eq=False)
class Setup:
    """One run of it."""

    wishes: Wishes
    talk: Talk
    progress: Progress
    environ: Mapping[str, str]
    installation: Installation
    sign_in: Callable[[Settings, str], None]
    """Lets a person sign in by OAuth, by the name of a table of the settings."""
    answers: SecretAnswers = field(init=False)

    def __attrs_post_init__(self) -> None:
        """Hear of the secret by the same flags and the same person."""
        self.answers = SecretAnswers(self.wishes, self.talk, self._for_system)

    def run(self) -> Outcome:
        """Ask, look, write, check; ``Refusal`` and ``ConfigError`` say what stands in the way."""
        for flag, name in (("--account", self.wishes.account), ("--oauth", self.wishes.oauth)):
            _name_of_flag(flag, name)
        path = place_for(self.wishes.config, self.environ, system=self._for_system)
        if _is_there(path) and not (self.wishes.force or self.wishes.dry_run):
            raise Refusal(
                "exists",
                f"There are settings already, in {path}. Replace them with --force (the old file is kept "
                "beside), or name another file with --config.",
            )
        address = self._address()
        self.installation.ready()
        servers = Servers(address, self.wishes, self.talk, self.progress)
        choice = servers.agreed()
        plan = self._with_people(self._plan(address, choice, path, servers.ca_file))
        text = text_of(plan, f"{datetime.now(UTC):%Y-%m-%d}")
        judge(text, path, self.environ)
        outcome = Outcome(
            path=path, text=text, plan=plan, choice=choice, custom_place=path not in self._usual_places()
        )
        if self.wishes.dry_run:
            return outcome
        self.installation.prepare()
        mode = FOR_ALL if self._for_system else OWNER_ONLY
        written = write_settings(path, text, self.answers.secret, self.environ, mode=mode)
        self.talk.tell("", f"Written: {path}")
        if written.backup is not None:
            self.talk.tell(f"The old settings are {written.backup}.")
        if written.old_secret is not None:
            self.talk.tell(f"The old password is in {written.old_secret}; remove it when it is of no use.")
        outcome = evolve(outcome, written=written, findings=self._checked(written.settings, plan))
        installed = self.installation.install(path, self.answers.path(), start=outcome.ok)
        return evolve(outcome, installed=installed)

    @property
    def _for_system(self) -> bool:
        return self.installation.kind == "system"

    def _usual_places(self) -> set[Path]:
        """Where settings are found without being named."""
        places = {Path(self.environ.get("MAILGATEWAY_CONFIG", "")).absolute()}
        with suppress(ConfigError):  # without a home
            usual = {**self.environ, "MAILGATEWAY_CONFIG": ""}
            places.add(place_for(None, usual, system=self._for_system))
        return places

    # What goes into the plan

    def _address(self) -> str:
        question = "Mail address of the agents' mailbox"
        if not self.wishes.address:
            return self.talk.text(question, "ADDRESS", address_of)
        try:
            return address_of(self.wishes.address)
        except ValueError as error:
            raise Refusal("invalid_address", f"The address {error}.") from None

    def _plan(self, address: str, choice: Choice, path: Path, ca_file: str) -> Plan:
        """All but the people."""
        imap, smtp, facts = choice.imap, choice.smtp, choice.facts
        assert imap is not None  # noqa: S101 - `agreed` gives both
        assert smtp is not None  # noqa: S101
        oauth = self.answers.oauth(choice)
        known = facts is not None and facts.plus_address
        plan = Plan(
            account=self.wishes.account,
            address=address,
            imap=imap.server,
            smtp=smtp.server,
            secret=SecretPlan("oauth", oauth.name) if oauth else self.answers.plan(choice, path),
            allowed=(),
            authserv_ids=self.wishes.authserv_ids,
            results_below_received=self.wishes.results_below_received,
            watch=self.wishes.watch,
            from_name=self.wishes.from_name,
            sent_folder=self.wishes.sent_folder,
            plus_address=known if self.wishes.plus_address is None else self.wishes.plus_address,
            ca_file=str(Path(ca_file).absolute()) if ca_file else "",
            oauth=oauth,
            for_system=self._for_system,
        )
        return with_facts(plan, choice)

    def _with_people(self, plan: Plan) -> Plan:
        """The plan with whoever is heard, and with what proves a mail to be theirs."""
        mine = plan.address.lower()
        if self.wishes.mailbox == "single" and not self.wishes.allow:
            allowed: tuple[str, ...] = (plan.address,)
        elif self.wishes.allow:
            allowed = tuple(map(_address_of_flag, self.wishes.allow))
        else:
            self.talk.tell(_PEOPLE.format(address=plan.address))
            allowed = (self.talk.text("Your own mail address", "--allow ADDRESS", address_of),)
        shared = mine in {each.lower() for each in allowed}
        if self.wishes.mailbox == "own" and shared:
            raise Refusal(
                "own_address_allowed",
                f"--allow names {plan.address} itself: that is one mailbox for the agents and you, which is "
                "--mailbox single.",
            )
        single = shared or self.wishes.mailbox == "single"
        if single:
            self.talk.tell("One mailbox for the agents and you: security.authentication is single-mailbox.")
        elif not plan.authserv_ids:
            self.talk.tell(
                "Your mail will be believed by its DKIM signature. `mailgateway doctor` also finds the name "
                "of the server whose check may be trusted (trusted_authserv_ids)."
            )
        notify = _address_of_flag(self.wishes.notify) if self.wishes.notify else ""
        return evolve(plan, allowed=allowed, notify=notify, single_mailbox=single)

    # The check

    def _checked(self, settings: Settings, plan: Plan) -> tuple[Finding, ...]:
        """Log in to both servers, as the service will; where OAuth is used, a person signs in first."""
        if not self.wishes.check:
            return ()
        if plan.oauth is not None:
            advice = f"Sign in: mailgateway auth {plan.oauth.name}{self._config_flag(settings)}"
            if self._for_system or not self.talk.present:
                what = "nobody is signed in yet, so no login was tried"
                return (Finding("oauth", State.SKIPPED, what, advice),)
            try:
                self.sign_in(settings, plan.oauth.name)
            except MailgatewayError as error:
                self.talk.tell("", f"{error}.", advice)
                return (Finding("oauth", State.FAILED, str(error), advice),)
        findings = self._logged_in(settings)
        refused = any(each.state is State.FAILED and each.step.endswith("login") for each in findings)
        if not (refused and self.answers.secret is not None and self.talk.present):
            return findings
        # Once: providers count wrong passwords.
        if not self.talk.agrees("Type the password again?", "--password-file FILE", default=True):
            return findings
        self.answers.again()
        return self._logged_in(settings)

    def _config_flag(self, settings: Settings) -> str:
        """What a command needs to find these settings."""
        place = settings.source
        return "" if place is None or place in self._usual_places() else f" --config {place}"

    def _logged_in(self, settings: Settings) -> tuple[Finding, ...]:
        from mailgateway.operator.check import check  # noqa: PLC0415 - the dialogues, when all is written

        readable = self._readable(settings)
        with self.progress() as tell:
            return run(lambda reactor: check(reactor, readable, tell), seconds=CHECK_SECONDS)

    def _readable(self, settings: Settings) -> Settings:
        """The settings with the credential of the service manager's as a file, which only it hands over."""
        file = self.answers.path()
        if file is None:
            return settings
        accounts = {}
        for name, account in settings.accounts.items():
            imap, smtp = (
                evolve(each, secret=PasswordFile(file)) if isinstance(each.secret, Credential) else each
                for each in (account.imap, account.smtp)
            )
            accounts[name] = evolve(account, imap=imap, smtp=smtp)
        return evolve(settings, accounts=accounts)


def address_of(text: str) -> str:
    """A mail address as the settings take it; ``ValueError`` with the rest of a sentence."""
    try:
        return str(ADDRESS.check(text.strip(), Reading({}, Path(), "")))
    except Wrong as error:
        raise ValueError(str(error)) from None


def _is_there(path: Path) -> bool:
    try:
        return path.exists() or path.is_symlink()
    except OSError as error:
        raise ConfigError([Problem(str(path), f"cannot be looked at: {error.strerror}")]) from None


def _name_of_flag(flag: str, name: str) -> None:
    """Look at what becomes the name of a table, and of files."""
    reading = Reading({}, Path(), "")
    tables({name: {}} if name else {}, "", reading)
    if reading.problems:
        raise ConfigError([Problem(flag, each.message) for each in reading.problems])


def _address_of_flag(text: str) -> str:
    try:
        return address_of(text)
    except ValueError as error:
        raise Refusal("invalid_address", f"--allow and --notify: {text} {error}.") from None
