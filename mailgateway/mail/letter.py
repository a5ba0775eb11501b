"""What a mail of ours says, before it is bytes.

A letter is made of what a session gave (subject, text, options, names) and of what is ours: the tag, the
options' numbers and links, how to answer and until when.  A person must be able to tell the two apart, so
what a session gave goes through ``cleaned`` before anything is made of it: no tag of ours and no ``mailto:``
link is left in it, and no field can break out of its line.
"""

from datetime import datetime
from enum import StrEnum, unique

from attrs import evolve, field, frozen

from mailgateway.ids import MessageId, OutboxId, RouteId
from mailgateway.mail.agent_text import safe_line, safe_markdown


@unique
class LetterKind(StrEnum):
    """What a mail of ours is for."""

    NOTIFICATION = "notification"
    SETTLE = "settle"
    DECISION = "decision"
    REMINDER = "reminder"
    """A decision that nobody has answered, once more and whole."""
    DIGEST = "digest"
    """What sessions wanted to say while the person was left alone, or in one go."""
    ANSWER = "answer"
    """Our own words: to a person's command, or why a reply was not delivered."""

    @property
    def asks(self) -> bool:
        """Whether a session waits for the answer."""
        return self in {LetterKind.DECISION, LetterKind.REMINDER}


@frozen
class Enclosure:
    """A file that goes with a letter; the text may show an image by ``attachment:<attachment_id>``."""

    filename: str
    content_type: str
    data: bytes = field(repr=False)
    attachment_id: str = ""


@frozen(kw_only=True)
class Who:
    """The session that speaks: what a person needs to know where the question comes from."""

    title: str = ""
    project: str = ""
    branch: str = ""
    device: str = ""

    @property
    def line(self) -> str:
        """The facts that are known, in one line."""
        return " · ".join(each for each in (self.title, self.project, self.branch, self.device) if each)


@frozen(kw_only=True)
class Offer:
    """One possible answer: what the person is shown of it; ``value`` is by what the session calls it."""

    label: str = field(repr=False)
    value: str = field(default="", repr=False)
    description: str = field(default="", repr=False)
    impact: str = field(default="", repr=False)
    """What happens if it is chosen."""
    sendable: bool = True
    """Whether the label can be sent back as it is; `cleaned` had to change it otherwise."""


@frozen(kw_only=True)
class Item:
    """One piece of news in a digest; ``text`` is Markdown."""

    subject: str = field(repr=False)
    text: str = field(repr=False)
    who: Who = field(factory=Who)
    at: datetime | None = None
    """When the session said it."""
    route: RouteId = field(default=RouteId(""))
    """By which this piece alone is answered; empty: it is not."""


@frozen(kw_only=True)
class Letter:
    """One mail to send.  ``text`` is Markdown; times are aware; Message-IDs have their brackets.

    ``subject`` is the question, or what it is about.  ``ambiguity`` (one paragraph) says what is unclear;
    ``text`` tells the rest.  ``recommendation`` is an option's label or value, or words of its own;
    ``multi`` says that several options may be chosen.  ``items`` are the news of a digest.

    ``references`` are the ancestors, oldest first.  ``reply_address`` is where answers go, when that is not
    ``sender_address``; ``one_tap`` says whether a mail that is no reply is believed, so that options can be
    links; ``card_url`` is where the question stands in the web inbox.  ``expires_at`` and ``asked_at`` are
    told in the time zone that they have.
    """

    kind: LetterKind
    sender_address: str
    sender_name: str
    recipient: str
    tag: str
    route: RouteId
    subject: str = field(repr=False)
    text: str = field(repr=False)
    message_id: MessageId
    date: datetime
    instance: str
    outbox_id: OutboxId
    who: Who = field(factory=Who)
    ambiguity: str = field(default="", repr=False)
    options: tuple[Offer, ...] = field(default=(), repr=False)
    recommendation: str | None = field(default=None, repr=False)
    multi: bool = False
    items: tuple[Item, ...] = field(default=(), repr=False)
    in_reply_to: MessageId | None = None
    references: tuple[MessageId, ...] = ()
    attachments: tuple[Enclosure, ...] = ()
    reply_address: str = ""
    one_tap: bool = True
    card_url: str = ""
    asked_at: datetime | None = None
    """When a question was first asked that is asked again."""
    expires_at: datetime | None = None

    @property
    def tags(self) -> frozenset[str]:
        """The names of tags that are ours and no session's."""
        return frozenset({self.tag.lower(), "mg", "pi"})

    @property
    def heading(self) -> str:
        """The subject without where it happened, which stands above it in the first line."""
        where = "".join(f" · {each}" for each in (self.who.project, self.who.device) if each)
        return self.subject.removesuffix(where) if self.kind is LetterKind.SETTLE else self.subject

    def is_recommended(self, offer: Offer) -> bool:
        """Whether the recommendation is this option."""
        given = self.recommendation or ""
        return bool(given) and given in {offer.label, offer.value}

    @property
    def advice(self) -> str:
        """The recommendation, when it is none of the options."""
        if any(self.is_recommended(offer) for offer in self.options):
            return ""
        return self.recommendation or ""


def cleaned(letter: Letter) -> Letter:
    """The letter as it may be shown: single lines where lines are due, nothing that only we may say.

    Our own words keep the tags in them, which lead a person to the questions that they speak of.
    """
    tags = letter.tags
    own = letter.kind is LetterKind.ANSWER

    def line(text: str) -> str:
        return safe_line(text, tags)

    def who(given: Who) -> Who:
        return Who(
            title=line(given.title),
            project=line(given.project),
            branch=line(given.branch),
            device=line(given.device),
        )

    return evolve(
        letter,
        subject=line(letter.subject),
        text=safe_markdown(letter.text, frozenset() if own else tags),
        who=who(letter.who),
        ambiguity=line(letter.ambiguity),
        options=tuple(_offer(each, tags) for each in letter.options),
        recommendation=line(letter.recommendation or ""),
        items=tuple(
            evolve(each, subject=line(each.subject), text=safe_markdown(each.text, tags), who=who(each.who))
            for each in letter.items
        ),
    )


def _offer(offer: Offer, tags: frozenset[str]) -> Offer:
    label = safe_line(offer.label, tags)
    return Offer(
        label=label,
        value=safe_line(offer.value, tags),
        description=safe_line(offer.description, tags),
        impact=safe_line(offer.impact, tags),
        sendable=label == " ".join(offer.label.split()),
    )
