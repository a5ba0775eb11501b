"""The list of hostile IMAP servers, row by row: which test holds each, and what is not built.

Rows T are faults of Twisted's stock client that ours must not have (``tests.twisted_facts`` pins them); the
numbered rows are habits of servers in the field.
"""

from twisted.trial.unittest import SynchronousTestCase

from tests.protocols.rows import Row, held, open_, unexplained, unknown_tests

IDLE = "protocols.test_imap_idle.IdleTests."
END = "protocols.test_imap_idle.EndTests."
BOX = "protocols.test_imap_mailbox.MailboxTests."
OPENING = "protocols.test_imap_opening.OpeningTests."
LOGIN = "protocols.test_imap_opening.LoginTests."
READING = "wire.test_imap_dialogue.ReadingTests."
HABITS = "protocols.test_imap_habits.HabitTests."
DIAL = "protocols.test_dial."
LINE = "daemons.test_line."
MAILS = "daemons.test_line_mails.TextTests."
HOURS = "daemons.test_hostile_imap.ConnectionTests."
ACCOUNT = "daemons.test_hostile_imap.AccountTests."
SCAN = "flows.test_scan."
FOLDERS = "flows.test_folders."
SENT = "daemons.test_sent."
MACHINE = "daemons.test_machine.MachineTests."

ROWS: dict[str, Row] = {
    "T1": held(
        "a line longer than the stock limit gives an empty result",
        "twisted_facts.test_imap_parser.ParserTests.test_a_long_line_gives_an_empty_result",
        READING + "test_bounds",
        BOX + "test_extended_search",
        BOX + "test_a_search_that_cannot_be_read_has_not_found_nothing",
    ),
    "T2": held(
        "a TLS peer that hangs",
        "twisted_facts.test_tls.HungPeerTests.test_lose_connection_waits_for_ever",
        OPENING + "test_silence_instead_of_a_greeting",
        BOX + "test_silence_during_fetch",
    ),
    "T3": held(
        "the stock timeout breaks with a queue",
        "twisted_facts.test_imap_login.DeadlineTests.test_with_a_queue_it_breaks",
        IDLE + "test_done_is_answered_in_time_or_the_line_is_dead",
    ),
    "T4": held(
        "news during a command is lost",
        "twisted_facts.test_imap_events.EventTests.test_exists_during_a_command_is_lost",
        LINE + "NewsTests.test_mail_that_comes_during_a_scan_leads_to_another_one",
    ),
    "T5": held(
        "EXPUNGE in the middle of a UID FETCH",
        "twisted_facts.test_imap_events.EventTests.test_expunge_in_a_uid_fetch_loses_a_message",
        BOX + "test_expunge_in_the_middle",
    ),
    "T6": held(
        "flags of others during a FETCH",
        "twisted_facts.test_imap_events.EventTests.test_flags_of_others_look_like_an_empty_message",
        BOX + "test_only_what_was_asked_for",
    ),
    "T7": held(
        "a literal as the last token",
        "twisted_facts.test_imap_parser.ParserTests.test_a_literal_at_the_end_swallows_the_next_line",
        READING + "test_literals_at_the_end_of_a_line",
    ),
    "T8": held(
        "a smiley in a text for people",
        "twisted_facts.test_imap_parser.ParserTests.test_a_smiley_drops_the_connection",
        READING + "test_texts_for_people_announce_no_literal",
    ),
    "T9": held(
        "braces in a text for people",
        "twisted_facts.test_imap_parser.ParserTests.test_braces_in_text_break_out",
        READING + "test_texts_for_people_announce_no_literal",
    ),
    "T10": held(
        "no text, lower case",
        "twisted_facts.test_imap_parser.ParserTests.test_an_end_without_text_drops_the_connection",
        BOX + "test_select",
    ),
    "T11": held(
        "a literal of ten gigabytes",
        "twisted_facts.test_imap_parser.ParserTests.test_no_literal_is_too_large",
        BOX + "test_a_literal_without_measure",
        READING + "test_bounds",
    ),
    "T12": held(
        "AUTHENTICATE: wrapped lines, the token twice",
        "twisted_facts.test_imap_login.LoginTests.test_long_answers_are_wrapped",
        "twisted_facts.test_imap_login.LoginTests.test_an_error_challenge_gets_the_token_again",
        LOGIN + "test_plain_with_initial_response",
        LOGIN + "test_a_refused_token_is_played_to_its_end",
        LOGIN + "test_a_second_challenge_is_cancelled",
    ),
    "T17": held(
        "BYE as the greeting",
        "twisted_facts.test_imap_events.EventTests.test_bye_text_is_lost",
        OPENING + "test_bye_as_greeting_gives_its_reason",
    ),
    "T18": held(
        "bodies asked for in the old form",
        "twisted_facts.test_imap_parser.ParserTests.test_bodies_are_asked_for_in_the_old_form",
        BOX + "test_fetch_message",
    ),
    "T19": held(
        "a password in the clear",
        "twisted_facts.test_imap_login.LoginTests.test_without_starttls_the_password_goes_in_clear",
        LOGIN + "test_no_login_without_tls_but_on_loopback",
    ),
    "1": held(
        "half-open IDLE",
        IDLE + "test_done_is_answered_in_time_or_the_line_is_dead",
        HOURS + "test_half_open_idle",
    ),
    "2": held(
        "a server that stops to push",
        HOURS + "test_mail_that_is_never_announced",
        LINE + "NewsTests.test_mail_that_was_never_announced_is_found_all_the_same",
        "daemons.test_habits.DeafTests.test_twice_halves",
        "daemons.test_habits.DeafTests.test_a_day_without_a_miss",
        "daemons.test_habits.AskTests.test_a_deaf_idle_is_renewed_more_often",
        "cli.test_status.AdviceTests.test_what_was_learned_of_a_server",
    ),
    "3": held(
        "no IDLE",
        HOURS + "test_a_server_without_idle_is_polled",
        "daemons.test_habits.RestTests.test_without_idle",
    ),
    "4": held(
        "NOOP shows nothing new (163, Naver)",
        "daemons.test_habits.AskTests.test_a_provider_that_is_known_for_it",
        "daemons.test_habits.AskTests.test_a_stranger_teaches_that_noop_shows_nothing",
        "daemons.test_habits.AskTests.test_a_stranger_teaches_that_only_select_shows_something",
        "daemons.test_habits.AskTests.test_a_good_server_is_not_suspected",
    ),
    "5": held(
        "IDLE is wanted broken early",
        HOURS + "test_an_idle_session_that_the_server_ends_each_minute",
        "daemons.test_habits.RestTests.test_by_host",
        "daemons.test_habits.AskTests.test_no_idle_where_it_is_not_worth_it",
        "test_providers.TableTests.test_every_row_is_sound",
    ),
    "6": held(
        "news before the plus, and DONE before it",
        IDLE + "test_news_before_the_plus",
        IDLE + "test_done_before_the_plus_waits_for_it",
        IDLE + "test_plus_and_end_in_one_packet",
    ),
    "7": held(
        "EXISTS between the scan and IDLE",
        HABITS + "test_news_in_the_packet_that_ends_a_command",
        LINE + "NewsTests.test_mail_that_comes_during_a_scan_leads_to_another_one",
    ),
    "8": held("signs of life in IDLE", IDLE + "test_news_and_done"),
    "9": held(
        "IDLE refused, or ended by the server",
        IDLE + "test_refused",
        IDLE + "test_ended_by_the_server",
        LINE + "NewsTests.test_a_server_that_refuses_to_idle_twice_is_polled",
        LINE + "NewsTests.test_a_server_that_ends_idle_by_itself",
    ),
    "10": held(
        "BYE: the token has expired",
        HABITS + "test_a_token_that_ran_out",
        HOURS + "test_a_token_that_ran_out",
        "daemons.test_logins.CommandTests.test_a_fresh_token_for_every_connection",
    ),
    "11": held(
        "a session ends with its token",
        HOURS + "test_a_token_that_ran_out",
        "daemons.test_habits.TokenTests.test_renewed_before_the_token_ends",
        "daemons.test_habits.TokenTests.test_tokens_that_live_too_short",
        lacks="A token that does not tell its end (it is no JWT) cannot be planned for.",
    ),
    "12": held(
        "authenticated but not connected",
        LOGIN + "test_what_a_refusal_means",
        HOURS + "test_a_login_that_is_worth_nothing",
        SCAN + "OutageTests.test_a_dead_session_speaks_against_no_mail",
    ),
    "13": held("too many connections", HOURS + "test_too_many_connections_at_login"),
    "14": held("a login for each poll", HOURS + "test_one_login_for_a_whole_day"),
    "15": held(
        "throttled, with a hint",
        HABITS + "test_a_hint_in_the_answer_to_a_command",
        HOURS + "test_a_hint_is_obeyed",
        SCAN + "OutageTests.test_throttling_speaks_against_no_mail",
        MACHINE + "test_patience_on_a_connection_that_is_in_order",
        MACHINE + "test_patience_has_an_end",
    ),
    "16": held(
        "a data command refused for now",
        BOX + "test_refused_for_now",
        HOURS + "test_a_command_that_is_refused_for_now",
        SCAN + "OutageTests.test_a_refusal_for_now_is_endured_for_long",
        MACHINE + "test_pauses_that_are_over_do_not_count",
    ),
    "17": held("new mail shown by NOOP only", HOURS + "test_mail_that_is_never_announced"),
    "18": held(
        "OK without a body",
        BOX + "test_fetch_message_without_text",
        SCAN + "ForwardTests.test_a_text_that_does_not_come_stops_the_scan_in_front_of_it",
        MAILS + "test_a_mail_that_is_named_without_its_header_is_fetched_by_itself",
        MAILS + "test_a_mail_without_header_and_text_stops_the_scan",
    ),
    "19": held(
        "n:* gives the last message whatever its UID", HABITS + "test_the_last_message_below_the_range"
    ),
    "20": held(
        "UIDVALIDITY changed",
        FOLDERS + "RenumberingTests.test_same_mails_other_order",
        FOLDERS + "RenumberingTests.test_some_gone_some_new",
        SCAN + "RenumberingTests.test_nothing_is_lost_and_nothing_comes_twice",
    ),
    "21": held(
        "other mails under the same numbers",
        FOLDERS + "RenumberingTests.test_numbers_that_shrank",
        FOLDERS + "RenumberingTests.test_a_reused_place_is_another_mail",
        "flows.test_receive.OnceTests.test_a_copy_is_a_duplicate",
        "flows.test_gaps.LateTests.test_it_is_taken_in",
        lacks="A new mail under a number that was read already, with UIDNEXT not shrunk, would have to be "
        "fetched to be noticed; what we act on is known by its bytes, so nothing is acted on twice.",
    ),
    "22": held(
        "no UIDVALIDITY",
        BOX + "test_select_with_little_told",
        FOLDERS + "OpenTests.test_a_server_that_tells_no_uid_validity",
        FOLDERS + "OpenTests.test_a_server_that_begins_to_tell",
    ),
    "23": held(
        "no UIDNEXT",
        BOX + "test_highest_uid",
        LINE + "PrepareTests.test_a_missing_uidnext_is_found_out",
        LINE + "PrepareTests.test_an_empty_mailbox_without_uidnext",
    ),
    "24": held(
        "forty thousand old mails",
        FOLDERS + "OpenTests.test_first_look",
        SCAN + "ForwardTests.test_the_first_look_begins_with_what_comes_from_now_on",
    ),
    "25": held(
        "our state is lost",
        FOLDERS + "OpenTests.test_first_look",
        SCAN + "ForwardTests.test_the_first_look_begins_with_what_comes_from_now_on",
    ),
    "26": held(
        "a lower UID becomes visible later",
        "flows.test_gaps.LateTests.test_it_is_taken_in",
        "flows.test_gaps.LateTests.test_over_a_restart",
        "flows.test_gaps.LateTests.test_nothing_comes_twice",
        "flows.test_gaps.EndTests.test_no_old_mail_at_the_first_look",
        "flows.test_gaps.EndTests.test_a_mail_that_is_gone",
        LINE + "NewsTests.test_a_mail_that_becomes_visible_late",
    ),
    "27": held("EXPUNGE renumbers", BOX + "test_expunge_in_the_middle"),
    "28": held(
        "halves, repetitions and news of others in a FETCH",
        BOX + "test_only_what_was_asked_for",
        "wire.test_imap_fetch.CollectorTests.test_halves",
        HABITS + "test_a_message_in_halves_and_twice",
    ),
    "29": held(
        "a UID that does not come",
        SCAN + "ForwardTests.test_a_text_that_never_comes_is_given_up_visibly",
        SCAN + "ForwardTests.test_a_mail_that_vanished_meanwhile_is_passed_over",
        "wire.test_imap_fetch.CollectorTests.test_named_without_header_fields",
        "flows.test_gaps.UnnamedTests.test_it_is_named_later",
        "flows.test_gaps.UnnamedTests.test_it_is_never_named",
        lacks="Only the last fifty numbers below the cursor are asked for again: what a catch-up over "
        "thousands leaves out further down counts as gone.",
    ),
    "30": held(
        "NO: some messages are gone", BOX + "test_gaps_are_no_failure", HABITS + "test_data_and_then_a_gap"
    ),
    "31": held(
        "one message that breaks the FETCH or the connection",
        SCAN + "PoisonTests.test_header_fields_that_break_the_connection",
        SCAN + "PoisonTests.test_a_text_that_breaks_the_connection",
        SCAN + "PoisonTests.test_a_mail_that_is_always_refused_for_now_or_closes_the_connection",
        SCAN + "OutageTests.test_lost_connections_are_endured_for_long",
        BOX + "test_an_unreadable_message_is_skipped_and_reported",
    ),
    "32": held(
        "long command lines refused",
        "wire.test_uid_set.UidSetTests.test_batches",
        "wire.test_imap_command.SerialiserTests.test_long_lines_are_refused",
    ),
    "33": held(
        "broken ENVELOPE and BODYSTRUCTURE",
        BOX + "test_fetch_headers",
        BOX + "test_an_unreadable_message_is_skipped_and_reported",
    ),
    "34": held("a wrong RFC822.SIZE, an odd origin", HABITS + "test_sizes_that_are_not_true"),
    "35": held(
        "items behind the closing parenthesis",
        HABITS + "test_items_behind_the_end",
        BOX + "test_broken_framing_of_a_message",
    ),
    "36": held(
        "a loss within a literal",
        BOX + "test_a_cut_literal",
        HABITS + "test_a_loss_at_every_byte_of_an_answer",
        "daemons.test_hostile_imap.LossTests.test_a_connection_that_is_cut_at_any_byte",
    ),
    "37": held(
        "a mail that is too large",
        "flows.test_receive.RefusedTests.test_too_large_is_a_notice",
        MAILS + "test_a_large_mail_is_fetched_after_its_header",
    ),
    "38": held(
        "literals that the server does not take",
        "wire.test_imap_dialogue.CommandTests.test_literals_wait_for_the_server",
        "wire.test_imap_dialogue.CommandTests.test_literal_plus",
        "wire.test_imap_dialogue.CommandTests.test_a_mail_waits_unless_it_is_small",
        SENT + "KeepTests.test_a_large_one_waits_for_the_server",
    ),
    "39": held("an empty mailbox refuses every set", BOX + "test_an_empty_mailbox_is_not_asked"),
    "40": held(
        "odd names of folders",
        BOX + "test_status_and_list",
        "wire.test_modified_utf7.ModifiedUtf7Tests.test_broken_names_stay_recognisable",
        SENT + "FindTests.test_the_raw_name_is_sent_back",
    ),
    "41": held(
        "finding Sent, Junk and All",
        SENT + "FindTests.test_purposes_are_asked_for_where_it_is_possible",
        SENT + "FindTests.test_by_name_where_nothing_is_marked",
        SENT + "FindTests.test_the_setting_wins",
        SENT + "FindTests.test_no_sent_folder",
        "domain.test_special_use.SentTests.test_the_mark_wins_over_the_name",
        "domain.test_special_use.JunkTests.test_mark_and_name",
        lacks="The folder of all mail is not needed: nothing is searched for there.",
    ),
    "42": held(
        "no hierarchy delimiter",
        READING + "test_literals_at_the_end_of_a_line",
        SENT + "FindTests.test_by_name_where_nothing_is_marked",
    ),
    "43": held(
        "mail that the user's filters hide",
        "daemons.test_junk.JunkTests.test_what_came_is_told",
        "daemons.test_junk.JunkTests.test_seldom_and_without_a_touch",
        lacks="Mail that the person's own rules move elsewhere is theirs; `watch` can name any folder.",
    ),
    "44": held(
        "ID is wanted before SELECT",
        LINE + "PrepareTests.test_identified_before_selected",
        BOX + "test_unsafe_login",
    ),
    "45": held("ID before the login tells nothing", LOGIN + "test_identify_after_login"),
    "46": held(
        "a wrong password, or IMAP switched off",
        ACCOUNT + "test_a_wrong_password_is_tried_once_more_after_ten_minutes",
        "daemons.test_logins.RefusalTests.test_twice_in_all_over_both_doors_and_restarts",
        "daemons.test_logins.ProviderTests.test_people_are_told_what_it_may_mean_there",
    ),
    "47": held("the login cannot be checked now", ACCOUNT + "test_a_login_that_cannot_be_checked_now"),
    "48": held(
        "NO without a reason",
        LOGIN + "test_what_a_refusal_means",
        ACCOUNT + "test_a_day_with_a_server_that_always_says_the_same",
        "daemons.test_logins.DoubtTests.test_three_times_it_is_the_server",
        "daemons.test_logins.DoubtTests.test_a_credential_that_never_logged_in_has_no_benefit",
    ),
    "49": held(
        "a loop of wrong passwords over restarts",
        ACCOUNT + "test_a_day_with_a_server_that_always_says_the_same",
        ACCOUNT + "test_a_day_of_farewells",
        ACCOUNT + "test_a_day_without_a_server",
        "daemons.test_failure_classes.RestartTests.test_each_class_keeps_its_pause_and_its_count",
    ),
    "50": held(
        "454 and 535 at SMTP",
        "daemons.test_hostile_smtp.LoginTests.test_a_login_that_cannot_be_checked_now",
        "daemons.test_hostile_smtp.LoginTests.test_a_day_with_a_server_that_always_says_the_same",
    ),
    "51": held("no usable mechanism", LOGIN + "test_no_way_to_log_in"),
    "52": held(
        "STARTTLS stripped or injected, PREAUTH before it",
        OPENING + "test_plain_text_behind_starttls_ends_the_connection",
        OPENING + "test_starttls_that_is_not_offered_or_refused",
        OPENING + "test_preauth_before_starttls_is_refused",
        "protocols.test_imap_loopback.LoopbackTests.test_plain_text_slipped_in_behind_starttls",
    ),
    "53": held(
        "a self-signed certificate",
        DIAL + "LoopbackTests.test_pinned",
        DIAL + "LoopbackTests.test_bad_certificates",
    ),
    "54": held(
        "one of IPv4 and IPv6 is broken",
        DIAL + "TimeTests.test_deadline",
        "protocols.test_dial_addresses.AddressTests.test_either_path",
        "protocols.test_dial_addresses.AddressTests.test_both_paths",
    ),
    "55": held(
        "another spelling of the user name",
        "protocols.test_imap_loopback.LoopbackTests.test_a_wrong_password",
        LOGIN + "test_delegated_user_names_use_login",
    ),
}


class ListTests(SynchronousTestCase):
    """The list itself."""

    def test_every_row_is_there(self) -> None:
        """None may be forgotten."""
        stock = {f"T{number}" for number in (*range(1, 13), 17, 18, 19)}
        self.assertEqual(set(ROWS), stock | {str(number) for number in range(1, 56)})

    def test_every_row_has_a_test_or_a_reason(self) -> None:
        """And every test that is named exists."""
        self.assertEqual(unknown_tests(ROWS), [])
        self.assertEqual(unexplained(ROWS), [])

    def test_a_name_that_is_no_test_is_found(self) -> None:
        """A renamed test must not leave its row without one."""
        names = (BOX + "test_select", BOX + "test_gone", "protocols.nowhere.T.test_x", BOX + "collect")
        rows = {"1": held("odd", *names), "2": open_("bare", "")}
        self.assertEqual(unknown_tests(rows), list(names[1:]))
        self.assertEqual(unexplained(rows), ["2"])
