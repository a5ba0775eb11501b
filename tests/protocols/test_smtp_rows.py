"""The list of hostile SMTP servers, row by row: which test holds each, and what is not built.

Rows T are faults of Twisted's stock client that ours must not have (``tests.twisted_facts`` pins them); the
numbered rows are habits of servers in the field.
"""

from twisted.trial.unittest import SynchronousTestCase

from tests.protocols.rows import Row, held, unexplained, unknown_tests

STOCK = "twisted_facts.test_smtp."
SEND = "protocols.test_smtp."
LOGIN = "protocols.test_smtp_login."
ENDINGS = "protocols.test_smtp_endings."
OUTCOME = "wire.test_smtp_outcome."
DOTS = "wire.test_dot_stuffing."
EHLO = "wire.test_esmtp."
HOURS = "daemons.test_hostile_smtp.MailTests."
LOGINS = "daemons.test_hostile_smtp.LoginTests."
OUTBOX = "flows.test_outbox."
COMPOSE = "mail.test_compose.ComposeTests."
MACHINE = "mail.test_automatic.MachineTests."

ROWS: dict[str, Row] = {
    "T13": held(
        "a refused password is tried twice on one connection",
        STOCK + "AuthTests.test_a_refused_password_is_tried_again",
        LOGIN + "LoginTests.test_a_wrong_password_is_tried_once",
    ),
    "T14": held(
        "five more deliveries after a loss",
        STOCK + "RetryTests.test_five_more_deliveries",
        HOURS + "test_loss_after_the_final_dot",
        LOGINS + "test_a_day_with_a_server_that_always_says_the_same",
    ),
    "T15": held(
        "a dot at the border of two blocks, bare line ends",
        STOCK + "DotTests.test_at_the_border_of_two_chunks",
        STOCK + "DotTests.test_the_injection_reaches_the_wire",
        SEND + "ChunkTests.test_every_border_of_the_real_block_size",
        SEND + "ChunkTests.test_any_message_in_any_blocks",
        DOTS + "DotStuffingTests.test_a_receiver_gets_the_message_and_nothing_after_it",
        DOTS + "BareLineEndTests.test_against_the_definition",
    ),
    "T16": held(
        "odd lines of EHLO",
        STOCK + "AuthTests.test_an_empty_line_breaks_out",
        STOCK + "AuthTests.test_names_in_lower_case_are_not_known",
        EHLO + "ExtensionTests.test_odd",
        EHLO + "ExtensionTests.test_anything_is_survived",
        LOGIN + "LoginTests.test_old_spelling",
    ),
    "56": held(
        "loss after the final dot",
        HOURS + "test_loss_after_the_final_dot",
        "daemons.test_hostile_smtp.LossTests.test_a_connection_that_is_cut_at_any_byte",
        ENDINGS + "LossTests.test_unclear_for_the_accepted_only",
        OUTBOX + "UnclearTests.test_it_rests_ten_minutes_also_over_restarts",
        OUTBOX + "UnclearTests.test_twice_unclear_is_failed",
        OUTBOX + "UnclearTests.test_a_reply_shows_that_it_arrived",
        "daemons.test_sender_endings.EndingTests.test_lost_after_the_dot",
        "daemons.test_sender_endings.EndingTests.test_stopped_after_the_dot",
        "daemons.test_copies.DoubtTests.test_it_lies_in_the_sent_folder",
        "daemons.test_copies.DoubtTests.test_it_does_not",
        "daemons.test_copies.DoubtTests.test_nobody_can_look",
    ),
    "57": held(
        "4xx, 5xx, 421 and greylisting",
        HOURS + "test_greylisting",
        HOURS + "test_refused_for_good",
        OUTCOME + "OutcomeTests.test_table",
        SEND + "RefusalTests.test_421_at_each_point",
        OUTBOX + "ConcludeTests.test_try_later_waits_longer_and_longer",
        "domain.test_outbox.ConclusionTests.test_the_schedule",
        "domain.test_outbox.ConclusionTests.test_giving_up",
    ),
    "58": held(
        "some recipients accepted, some not",
        SEND + "RefusalTests.test_some_recipients",
        OUTBOX + "ConcludeTests.test_who_has_it_gets_it_no_second_time",
    ),
    "59": held(
        "a sender that is not the login",
        HOURS + "test_senders_that_are_not_ours",
        OUTCOME + "OutcomeTests.test_table",
    ),
    "60": held(
        "passwords switched off by an administrator",
        OUTCOME + "RefusalTests.test_switched_off_by_an_administrator",
        OUTCOME + "RefusalTests.test_table",
    ),
    "61": held(
        "a refusal that comes and goes",
        LOGINS + "test_a_refusal_that_comes_and_goes",
        "daemons.test_logins.ProviderTests.test_a_refusal_that_comes_and_goes_rests_longer",
    ),
    "62": held(
        "the server gives the mail another Message-ID",
        OUTCOME + "OutcomeTests.test_the_reply_is_kept",
        OUTCOME + "OutcomeTests.test_the_id_that_the_server_gave",
        HOURS + "test_the_server_gives_another_message_id",
        "flows.test_receive.DeliveredTests.test_by_tag_alone_and_by_chain_alone",
        lacks="A server that gives another id and does not tell it: answers are then known by the tag.",
    ),
    "63": held(
        "copies in the Sent folder",
        "daemons.test_copies.WhereTests.test_by_the_submission_server",
        "daemons.test_copies.KeepTests.test_a_copy_of_what_was_sent",
        "daemons.test_copies.KeepTests.test_not_where_it_is_already",
        "daemons.test_copies.KeepTests.test_a_failure_is_no_failure_of_the_mail",
        "daemons.test_copies.NoCopyTests.test_nothing_is_put_there",
        "daemons.test_sent.KeepTests.test_once",
        "daemons.test_sent.KeepTests.test_a_search_that_failed_has_not_found_nothing",
        "test_providers.TableTests.test_who_saves_what_is_sent",
    ),
    "64": held(
        "a mail to oneself does not show",
        "flows.test_submit.SubmitTests.test_the_mails_of_a_session_are_one_thread",
        lacks="Nothing of ours waits for a mail to oneself: health is judged by logins and scans.",
    ),
    "65": held(
        "STARTTLS missing",
        LOGIN + "TlsTests.test_starttls_not_offered",
        LOGIN + "TlsTests.test_starttls_refused",
        LOGIN + "TlsTests.test_injected_bytes",
        LOGIN + "TlsTests.test_no_password_in_clear_over_a_network",
        "test_settings.RefusedTests.test_plain_text_is_for_this_machine",
        lacks="No second port is tried: the settings name one, and a password goes nowhere else; the refusal "
        "says that there mostly is another one.",
    ),
    "66": held(
        "SMTPUTF8 only where it is needed",
        SEND + "LocalRefusalTests.test_international",
        SEND + "LocalRefusalTests.test_one_recipient",
        EHLO + "PathTests.test_international",
        COMPOSE + "test_an_international_domain_becomes_a_labels",
    ),
    "67": held(
        "no 8BITMIME, long lines, bare line ends",
        COMPOSE + "test_no_words_make_faulty_bytes",
        COMPOSE + "test_a_long_thread_is_cut_in_the_middle",
        SEND + "LocalRefusalTests.test_whole_mail",
        SEND + "SendTests.test_without_extensions",
    ),
    "68": held(
        "too large",
        HOURS + "test_the_message_is_too_large",
        SEND + "SendTests.test_one_mail",
        SEND + "SendTests.test_size_after_login_counts",
        lacks="No smaller mail is sent in its place: what was approved is what is sent; the sender is told.",
    ),
    "69": held(
        "too many mails on a connection",
        HOURS + "test_too_many_mails_on_a_connection",
        SEND + "SendTests.test_a_connection_has_its_share",
        SEND + "RefusalTests.test_421_between_mails",
        "daemons.test_sender.WalkTests.test_more_mails_than_one_connection_takes",
    ),
    "70": held(
        "loops with machines",
        MACHINE + "test_fields_of_machines",
        MACHINE + "test_subjects_of_absence_notices",
        "mail.test_automatic.OwnMailTests.test_marker_and_message_id",
        "flows.test_receive.RefusedTests.test_notices_cannot_flood_a_session",
        "flows.test_submit.BudgetTests.test_the_eleventh_waits",
    ),
}


class ListTests(SynchronousTestCase):
    """The list itself."""

    def test_every_row_is_there(self) -> None:
        """None may be forgotten."""
        expected = [f"T{number}" for number in range(13, 17)] + [str(number) for number in range(56, 71)]
        self.assertEqual(list(ROWS), expected)

    def test_every_row_has_a_test_or_a_reason(self) -> None:
        """And every test that is named exists."""
        self.assertEqual(unknown_tests(ROWS), [])
        self.assertEqual(unexplained(ROWS), [])
