"""What words of a person's choose at the terminal: read by the parser that reads their mails."""

from collections.abc import Mapping, Sequence

from mailgateway.domain.choice import Chosen, Option, parse_answer


def chosen(words: Sequence[str], options: Sequence[Mapping[str, object]], *, multi: bool) -> tuple[str, ...]:
    """The values that these words choose, each a value, a label, a number or a letter; empty: none surely.

    Words that are values already are taken as they stand.
    """
    known = {str(each["value"]) for each in options}
    if all(each in known for each in words) and (multi or len(words) == 1):
        return tuple(words)
    offered = tuple(Option(str(each["value"]), str(each["label"])) for each in options)
    parsed = parse_answer(", ".join(words), offered, multi)
    return parsed.values if isinstance(parsed, Chosen) and not parsed.note else ()
