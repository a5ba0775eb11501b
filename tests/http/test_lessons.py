"""The lessons of a postbox for questions, one by one: which test holds each, or why it does not apply.

Each lesson names the test that fails when it is unlearned.  A lesson of the people's pages is theirs to hold;
one of a design that is not ours (a chat, push messages, a client that owns the server) says so.
"""

from importlib import import_module
from importlib.util import find_spec

from twisted.trial.unittest import SynchronousTestCase

ASKED = "tests.http.test_questions"
LISTS = "tests.http.test_question_lists"
WAITS = "tests.http.test_question_waits"
RACES = "tests.flows.test_question_races.RaceTests"
MODEL = "tests.flows.test_question_model.ModelTests.test_questions"
RULES = "tests.domain.test_question_rules"
VERBS = "tests.cli.test_questions"

PAGES = "tests.http.test_inbox_pages"
DOOR = "tests.http.test_inbox_login"
FORGED = "tests.http.test_inbox_forged"
BROWSER = "tests.acceptance.test_inbox"
NO_CHAT = "there is no chat about a question"
NO_PUSH = "there are no push messages: mail is the alert"
ONE_SERVICE = "clients do not look for servers: the settings name the one service"

LESSONS: dict[int, tuple[str, ...] | str] = {
    1: (f"{ASKED}.CreateTests.test_a_client_that_hangs_up_has_asked",),
    2: (f"{ASKED}.CreateTests.test_a_client_that_hangs_up_has_asked", MODEL),
    3: (f"{ASKED}.AnswerTests.test_five_results_are_five",),
    4: (f"{LISTS}.ListTests.test_only_answers_have_a_read_flag",),
    5: (f"{LISTS}.ListTests.test_every_filter_alone_and_with_others",),
    6: (f"{RACES}.test_first_readers", f"{ASKED}.AnswerTests.test_recovery_reads_without_owning"),
    7: (f"{ASKED}.ChangeTests.test_revise_replaces_the_whole",),
    8: (f"{ASKED}.ChangeTests.test_transfer_counts_owners", MODEL),
    9: (f"{ASKED}.ChangeTests.test_takeover_needs_silence", f"{RACES}.test_ten_takers"),
    10: (
        f"{RACES}.test_answer_against_cancel_and_revise",
        f"{WAITS}.EventTests.test_every_change_is_told",
    ),
    11: (f"{ASKED}.ChangeTests.test_what_ended_stays_ended",),
    12: "request ids are rows and not entries of a cache: none is ever dropped to make room",
    13: "no bound of the service is derived from another one that could be smaller",
    14: ("tests.store.test_question_rows.UpgradeTests.test_decisions_become_questions",),
    15: "a session's id is its client's to make and to keep",
    16: (f"{ASKED}.CreateTests.test_what_was_said_is_kept",),
    17: "a client holds no callbacks in the service; what it waits for ends with its connection",
    18: NO_CHAT,
    19: ("tests.http.test_events.EventTests.test_what_changes_is_told_as_ids",),
    20: "a cancel is a request like any other, to the one service",
    21: ("tests.acceptance.test_life",),
    22: ("tests.acceptance.test_life",),
    23: ONE_SERVICE,
    24: ONE_SERVICE,
    25: ONE_SERVICE,
    26: ("tests.http.test_guards",),
    27: ("tests.client.test_client",),
    28: ONE_SERVICE,
    29: ONE_SERVICE,
    30: ("tests.cli.test_life",),
    31: "a page in a browser and a session's client do not share a life",
    32: "a port that is taken is a failure of the start",
    33: (
        f"{LISTS}.ListTests.test_every_filter_alone_and_with_others",
        f"{LISTS}.ListTests.test_a_list_holds_no_words_but_the_subject",
    ),
    34: "of exposing the pages, and held there",
    35: "the command is an entry point of the package",
    36: ("tests.http.test_api", f"{DOOR}.CookieTests.test_a_name_forged_by_a_proxy_is_nobody"),
    37: ("tests.http.test_guards", f"{FORGED}.ForgedTests.test_foreign_origins_and_hosts"),
    38: (f"{ASKED}.ForeignTests.test_an_instance_of_another_session_is_refused",),
    39: "the service opens no path that a request names",
    40: NO_CHAT,
    41: "answers are kept by the service alone; clients keep no files of them",
    42: NO_PUSH,
    43: (f"{WAITS}.EventTests.test_every_change_is_told",),
    44: (f"{DOOR}.LinkTests.test_where_it_leads",),
    45: (f"{ASKED}.AnswerTests.test_the_answer_is_told_by_ids_and_read_apart",),
    46: (f"{PAGES}.CardTests.test_the_loser_sees_who_won", f"{PAGES}.CardTests.test_sent_twice"),
    47: (f"{BROWSER}.LiveTests.test_no_false_word_before_the_first_one",),
    48: (f"{BROWSER}.AnswerTests.test_a_second_tap_does_nothing",),
    49: NO_PUSH,
    50: (f"{BROWSER}.AnswerTests.test_by_keys_alone", f"{BROWSER}.LiveTests.test_news_come_by_themselves"),
    51: (
        f"{LISTS}.ListTests.test_the_most_urgent_first_then_the_oldest",
        f"{PAGES}.QueueTests.test_urgency_then_age_and_families_together",
    ),
    52: "of a client that shows notices; a notice has one id for one ending",
    53: (
        f"{ASKED}.CreateTests.test_the_handle_is_all_that_is_needed",
        f"{LISTS}.HistoryTests.test_a_history_tells_what_changed",
    ),
    54: (
        f"{LISTS}.ListTests.test_pages_skip_nothing",
        f"{LISTS}.ListTests.test_a_cursor_is_of_one_query",
        f"{RULES}.CursorTests.test_a_cursor_comes_back",
    ),
    55: (f"{LISTS}.ListTests.test_a_scope_is_a_word_of_ours",),
    56: (f"{LISTS}.ListTests.test_scopes_are_seen_from_the_session",),
    57: (
        f"{WAITS}.WaitTests.test_a_client_that_goes_ends_its_wait_and_nothing_else",
        "tests.http.test_places",
    ),
    58: "waking a client's host is the client's; a notice is delivered at least once, and acked once",
}


class LessonTests(SynchronousTestCase):
    """The list is whole, and what it names is there."""

    def test_every_lesson_is_held_or_says_why_not(self) -> None:
        """58 of them; each test that is named exists."""
        self.assertEqual([*LESSONS], [*range(1, 59)])
        for number, held in LESSONS.items():
            if isinstance(held, str):
                self.assertGreater(len(held), 10, number)
                continue
            for name in held:
                self.assertTrue(_exists(name), f"{number}: {name}")


def _exists(name: str) -> bool:
    """Whether a module, or a test in it, is there."""
    words = name.split(".")
    cut = next((at for at, word in enumerate(words) if word[0].isupper()), len(words))
    if cut == len(words):
        return find_spec(name) is not None
    found: object = import_module(".".join(words[:cut]))
    for word in words[cut:]:
        found = getattr(found, word, None)
    return found is not None
