"""The matrix: each kind of fault, how it is tried, and the tests that prove it.

A test is named by its file, or by its file and its function; all its parameters belong to it. `open` is what
is known to be missing: it is printed with the row, and never counts as passed.
"""

from __future__ import annotations

from typing import NamedTuple

FLOW = "tests/faults/test_every_flow.py"
POWER = "tests/faults/test_power_cut.py"
LEDGER = "tests/faults/test_ledger_faults.py"
MEMORY = "tests/faults/test_memory_faults.py"
CONFLICTS = "tests/faults/test_conflict_faults.py"
TOPICS = "tests/faults/test_topics_faults.py"
HOOKS = "tests/faults/test_hook_install_faults.py"
WORK = "tests/faults/test_workstream_faults.py"
STOPPED = "tests/faults/test_stopped_launchers.py"
LIFE = "tests/e2e/test_lifecycle.py"
LEASE = "tests/workstream/test_lease.py"
TIMES = "tests/workstream/test_lease_timelines.py"
SHARED_LOCK = "tests/memory/shared/test_lock.py"
LINKS = "tests/memory/test_conformance_links.py"
MERGE = "tests/memory/test_conformance_merge.py"
SERVER = "tests/service/test_server.py"
LOBBY = "tests/service/test_lobby.py"


class Row(NamedTuple):
    """open: what of the row no test tries, in a few words"""

    number: int
    fault: str
    how: str
    tests: tuple[str, ...]
    open: str = ""


ROWS = (
    Row(
        1,
        "kill -9",
        "at every call of every flow; a real process killed by strace",
        (
            f"{FLOW}::test_a_kill_at_any_call_loses_nothing",
            f"{MEMORY}::test_a_kill_at_any_write_loses_nothing_and_is_recovered_from",
            f"{CONFLICTS}::test_a_kill_at_any_write_loses_nothing_and_the_merge_comes_to_the_same_end",
            f"{TOPICS}::test_a_kill_at_any_point_loses_nothing_and_a_retry_does_it_once",
            f"{LEDGER}::test_a_batch_that_a_kill_cut_off",
            f"{LEDGER}::test_a_first_start_that_a_kill_cut_off",
            f"{LEDGER}::test_a_forgetting_that_a_kill_cut_off",
            f"{LEDGER}::test_a_sealing_that_a_kill_cut_off",
            f"{WORK}::test_a_life_that_a_kill_cut_off_goes_on_to_the_same_end",
            f"{HOOKS}::test_a_kill_anywhere_leaves_the_old_settings_or_the_new_and_the_next_run_ends_it",
            "tests/faults/test_memory_strace.py",
            "tests/faults/test_backup_faults.py",
        ),
    ),
    Row(
        2,
        "kill twice",
        "again during the recovery",
        (
            f"{FLOW}::test_a_second_kill_in_the_recovery_loses_nothing",
            f"{MEMORY}::test_a_second_kill_during_the_recovery_loses_nothing",
            f"{CONFLICTS}::test_a_second_kill_during_the_recovery_loses_nothing",
            f"{TOPICS}::test_a_second_kill_during_recovery_changes_nothing_about_that",
            f"{LEDGER}::test_a_kill_during_the_recovery_from_a_kill",
        ),
    ),
    Row(
        3,
        "random kill under load",
        "three writers, runs in one workstream, imports, tools beside; the daemon killed after 1 to 500 ms",
        (
            "tests/faults/test_random_kills.py",
            "tests/faults/test_ledger_process.py::test_kills_at_random_moments_of_an_import_lose_and_double_nothing",
            "tests/faults/test_topics_cotenants.py::test_daemons_that_are_killed_in_the_middle_lose_and_double_nothing",
        ),
    ),
    Row(
        4,
        "EIO, ENOSPC, EACCES, EMFILE, EDQUOT, short write, EINTR",
        "at every call of every flow; at random, also below a whole daemon; EINTR by strace",
        (
            f"{FLOW}::test_an_error_at_any_call_is_told_and_the_work_can_be_done_again",
            f"{FLOW}::test_errors_at_random_lose_nothing",
            f"{FLOW}::test_writes_that_take_only_a_part_are_gone_on_with",
            "tests/faults/test_interrupted_calls.py",
            "tests/faults/test_failing_calls.py",
            f"{MEMORY}::test_an_error_at_any_call_is_told_and_caught_up_with",
            f"{CONFLICTS}::test_an_error_at_any_call_is_caught_up_with",
            f"{MEMORY}::test_a_disk_that_stays_full_or_read_only_leaves_every_entry_usable",
            f"{TOPICS}::test_an_error_at_any_point_is_told_and_a_retry_does_it_once",
            f"{HOOKS}::test_an_error_anywhere_is_told_and_leaves_nothing_half_done",
            "tests/test_disk.py",
        ),
    ),
    Row(
        5,
        "full disk",
        "tmpfs full of bytes or names, filled and freed ten times",
        (
            "tests/faults/test_full_disk.py",
            "tests/faults/test_topics_full_disk.py",
            "tests/faults/test_ledger_process.py::test_a_full_disk_stops_nothing_for_good",
        ),
    ),
    Row(6, "power cut", "ext4 on a loop device, noauto_da_alloc; at once and after the journal", (POWER,)),
    Row(
        7,
        "database faults",
        "a VFS that fails or tears at each write, once and for a while",
        (
            f"{LEDGER}::test_an_error_in_a_batch",
            f"{LEDGER}::test_an_error_while_forgetting_is_told_and_finished",
            f"{LEDGER}::test_a_batch_that_a_kill_cut_off",
            f"{WORK}::test_a_claim_that_the_disk_refused_is_no_claim",
            "tests/ledger/test_schema.py::test_a_damaged_database_is_named",
        ),
    ),
    Row(
        8,
        "failed fsync",
        "each fsync once, later ones fine",
        (
            f"{FLOW}::test_a_flush_that_failed_is_told_and_what_it_was_for_is_written_anew",
            f"{MEMORY}::test_a_flush_that_failed_is_not_taken_for_done",
            "tests/test_disk.py::test_a_failed_flush_is_followed_by_writing_anew",
        ),
    ),
    Row(
        9,
        "adapters, any bytes",
        "Hypothesis on each adapter; a short atheris search of each reader",
        (
            "tests/contract/test_adapters.py",
            "tests/contract/test_adapter_types.py",
            "tests/contract/test_row_adapters.py",
            "tests/fuzz/test_fuzz.py",
        ),
    ),
    Row(
        10,
        "adapter versions",
        "every cut near the end of each fixture, rewrites in place, unknown records",
        (
            "tests/contract/test_adapters.py::test_every_cut_near_the_end_of_a_fixture_loses_nothing",
            "tests/contract/test_adapters.py::test_unknown_record_is_a_loss_and_the_rest_goes_on",
            "tests/contract/test_adapters.py::test_parsing_twice_gives_the_same_ids",
            "tests/ledger/test_reading_rewrites.py",
        ),
    ),
    Row(
        11,
        "slow and idle peers",
        "10,000 silent connections and 1,000 of a byte a second, beside pings",
        (
            "tests/faults/test_crowd.py",
            f"{LOBBY}::test_a_client_that_sends_a_byte_a_second_is_let_go_in_time",
            f"{SERVER}::test_client_that_never_reads_its_answer_is_dropped",
            f"{LOBBY}::test_at_the_cap_the_oldest_silent_client_makes_room",
        ),
    ),
    Row(
        12,
        "garbage on the socket",
        "large, deep, no UTF-8, wrong tags",
        (
            f"{LIFE}::test_garbage_of_every_kind_gets_one_reply_or_the_end_and_the_daemon_lives",
            f"{SERVER}::test_json_however_broken_is_a_bad_request",
            f"{LOBBY}::test_garbage_is_answered_with_a_named_failure",
            "tests/service/test_wire.py",
            "tests/faults/test_garbage.py",
        ),
    ),
    Row(
        13,
        "foreign uid",
        "as another user through opened modes; folders open to others",
        (
            f"{LIFE}::test_another_user_cannot_talk_to_the_socket_even_when_its_modes_are_opened",
            "tests/e2e/test_socket_path.py::test_a_fallback_folder_open_to_others_is_refused_by_daemon_and_client",
            "tests/faults/test_foreign_user.py",
        ),
    ),
    Row(
        14,
        "links and paths",
        "1,000 races in the shared folder, a swap at each call of healing, odd names, pipes, devices",
        (
            "tests/faults/test_topics_links.py",
            "tests/memory/test_swapped_paths.py",
            f"{MERGE}::test_25_a_link_sitting_in_the_owned_folder_is_never_written_through",
            f"{MERGE}::test_26_notes_with_long_names_that_collide_are_both_kept",
            f"{MERGE}::test_26_notes_with_odd_names_are_carried",
            f"{MERGE}::test_32_names_that_turn_out_to_be_one_are_both_kept",
            f"{MERGE}::test_devices_and_fifos_stay_behind_and_the_rest_goes_on",
            "tests/e2e/test_socket_path.py::test_anything_else_at_the_path_is_named_and_left",
        ),
    ),
    Row(
        15,
        "two daemons",
        "50 starts at once; 20 rounds in which the winner is killed; an old and a new version meet",
        (
            f"{LIFE}::test_of_fifty_starts_at_once_exactly_one_serves",
            f"{LIFE}::test_a_daemon_older_than_the_package_is_named_and_restarted_by_up",
            "tests/faults/test_instances.py",
            "tests/e2e/test_socket_path.py::test_a_live_socket_is_left_to_its_owner_however_slow",
        ),
    ),
    Row(
        16,
        "co-tenant",
        "four writers of two programs, 500 writes each; dead, slow and foreign holders",
        (
            "tests/faults/test_topics_cotenants.py::test_four_writers_of_two_kinds_lose_no_line",
            "tests/faults/test_topics_cotenants.py::test_a_live_holder_is_never_robbed_and_a_dead_one_is_at_once",
            SHARED_LOCK,
        ),
    ),
    Row(
        17,
        "clock",
        "real processes whose wall clock is set back, ahead, to 1970 and 2038; absurd times of files",
        (
            "tests/faults/test_clock_steps.py",
            f"{LEASE}::test_the_wall_clock_is_of_no_account",
            f"{SHARED_LOCK}::test_a_clock_that_is_set_robs_no_live_holder",
            f"{MERGE}::test_27_equal_times_keep_the_owned_copy_and_one_nanosecond_decides",
            f"{MERGE}::test_27_absurd_times_are_merged_without_trouble",
        ),
    ),
    Row(
        18,
        "suspend",
        "a time namespace ahead of the machine; launchers that were stopped, long for ten minutes",
        (
            f"{LEASE}::test_time_asleep_counts",
            f"{LEASE}::test_a_launcher_that_was_stopped_comes_back_while_nobody_claimed",
            STOPPED,
            "tests/service/test_runs_stopped.py",
            TIMES,
            "tests/workstream/test_processes.py",
            "tests/e2e/test_run_clock.py",
        ),
    ),
    Row(
        19,
        "reboot",
        "another boot id under stored leases",
        (
            f"{LEASE}::test_after_a_reboot_every_lease_is_void",
            f"{TIMES}::test_a_reboot_voids_the_lease_and_its_run_is_gone",
            "tests/service/test_runs.py::test_after_a_reboot_every_run_is_void",
            "tests/e2e/test_run_clock.py",
        ),
    ),
    Row(
        20,
        "secrets",
        "made-up values of every shape in every form of text, then every file of memd searched",
        (
            "tests/ledger/test_sanitiser_shapes.py",
            "tests/ledger/test_sanitiser_false_marks.py",
            "tests/ledger/test_sanitiser_properties.py",
            "tests/e2e/test_ledger_import.py::test_a_secret_reaches_no_file_of_memd",
            "tests/e2e/test_secrets.py",
        ),
    ),
    Row(
        21,
        "hook",
        "no daemon, a hung, slow, dying or babbling one, a full backlog",
        (
            "tests/ctl/test_hook_path.py",
            "tests/ctl/test_hook_states.py",
            "tests/hooks/test_plugins_away.py",
            "tests/service/test_hooks_harmless.py",
            "tests/e2e/test_hooks.py",
        ),
    ),
    Row(
        22,
        "delivery",
        "a kill at every write between offer, claim and the child's start",
        (
            f"{WORK}::test_a_life_that_a_kill_cut_off_goes_on_to_the_same_end",
            f"{WORK}::test_a_claim_that_the_disk_refused_is_no_claim",
            f"{POWER}::test_what_a_power_cut_leaves_is_whole_and_gone_on_with",
            "tests/service/test_hooks_start.py",
            "tests/workstream/test_runs_delivery.py",
        ),
    ),
    Row(
        23,
        "watch",
        "bursts, the kernel's queue overflows, too few watches or instances, folders that are exchanged",
        (
            "tests/faults/test_burst.py",
            "tests/faults/test_watch_limits.py",
            "tests/e2e/test_heal_live.py::test_a_store_that_appears_all_at_once_is_healed_within_five_seconds",
            "tests/e2e/test_heal_live.py::test_a_removed_and_remade_login_is_linked_again",
            "tests/e2e/test_heal_live.py::test_a_link_replaced_by_a_real_folder_is_merged_and_made_again",
            "tests/e2e/test_ledger_import.py::test_a_burst_of_files_is_found_to_the_last_one",
        ),
    ),
    Row(
        24,
        "upgrade",
        "a ledger of every version is taken over; a later one is refused untouched; the protocol on record",
        (
            "tests/ledger/test_schema.py",
            "tests/contract/test_protocol_schema.py",
        ),
    ),
    Row(25, "soak", "a scripted day", ("tests/soak",)),
)
