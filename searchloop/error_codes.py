"""The codes of errors, for programs that decide by them; scripts/reference.py writes the list."""

from __future__ import annotations

from enum import StrEnum

# fmt: off
ErrorCode = StrEnum("ErrorCode", [
    "agent_exists", "already_decided", "always_searches", "ambiguous_model", "answer_cut",
    "attachment_too_large", "auth", "backend_unreachable", "bad_after", "bad_agent",
    "bad_arguments", "bad_attachment", "bad_certificates", "bad_config", "bad_context_length",
    "bad_database", "bad_decision", "bad_domain", "bad_dotenv", "bad_file", "bad_folders",
    "bad_format", "bad_glob", "bad_header", "bad_headers", "bad_host", "bad_instructions",
    "bad_json", "bad_key", "bad_keys", "bad_limit", "bad_limits", "bad_log", "bad_login",
    "bad_model", "bad_model_name", "bad_offset", "bad_option", "bad_otel", "bad_pair", "bad_path",
    "bad_pattern", "bad_plan", "bad_policy", "bad_port", "bad_prices", "bad_program", "bad_proxies",
    "bad_proxy", "bad_public_url", "bad_range", "bad_request", "bad_response", "bad_schema",
    "bad_search", "bad_search_option", "bad_server", "bad_servers", "bad_setting", "bad_stdin",
    "bad_system", "bad_template", "bad_text", "bad_token_file", "bad_url", "bad_usage",
    "bad_user_header", "bad_view", "bad_workspace", "binary_file", "blocked", "built_in", "busy",
    "cannot_see", "changed_since", "chats_undecided", "closed_path", "cloud_refused", "config",
    "context_length", "context_too_long", "cut_upload", "damaged", "declined", "definition_changed",
    "denied_by_rule", "disk_full", "duplicate_server", "empty_answer", "empty_claim", "empty_file",
    "empty_query", "empty_question", "empty_title", "empty_url", "endless_pause", "exposed",
    "fenced", "file_changed", "file_exists", "file_refused", "file_too_large", "filtered",
    "fixed_token", "forbidden", "history_refused", "incomplete", "internal", "interrupted",
    "key_in_arguments", "library_rebuilt", "library_unavailable", "link_refused", "linked_file",
    "login_failed", "login_refused", "login_required", "login_timeout", "many_matches",
    "mcp_bad_answer", "mcp_changed", "mcp_elsewhere", "mcp_error", "mcp_failed", "mcp_flood",
    "mcp_login", "mcp_lost", "mcp_refused", "mcp_timeout", "mcp_unavailable", "mcp_unreachable",
    "method_not_allowed", "missing_command", "missing_extra", "missing_folder", "missing_key",
    "missing_package", "missing_setting", "missing_url", "missing_variable", "model_not_found",
    "model_stumbled", "moved", "needs_js", "network", "newer_store", "no_agent", "no_attachment",
    "no_backend", "no_change", "no_copy", "no_domain_filter", "no_driver", "no_file", "no_folder",
    "no_host", "no_key", "no_key_store", "no_login", "no_match", "no_mermaid", "no_model",
    "no_native_search", "no_part", "no_plan", "no_program", "no_project", "no_prompt", "no_pull",
    "no_question", "no_response", "no_room", "no_server", "no_servers", "no_session", "no_source",
    "no_such_file", "no_such_line", "no_summary", "no_tool", "no_tools", "no_turn", "no_undo",
    "no_value", "no_workspace", "not_allowed", "not_changeable", "not_damaged", "not_found",
    "not_over", "not_ready", "not_recorded", "not_utf8", "not_written", "nothing_found",
    "nothing_to_approve", "nothing_to_check", "nothing_to_find", "nothing_to_undo", "offline",
    "old_text", "operators_only", "option_not_taken", "outside_workspace", "overloaded",
    "overtaken", "own_key", "own_loop", "parse", "port_denied", "port_in_use", "program_budget",
    "question_too_long", "quota", "rate", "rate_limited", "read_only", "resting", "schema_mismatch",
    "schema_not_taken", "script_over", "search_off", "secret_file", "server_error", "server_exists",
    "shared_backend", "short_token", "store_failed", "switched_off", "timeout", "too_complex",
    "too_large", "tool_call_slip", "unauthorized", "unknown_call", "unknown_command",
    "unknown_engine", "unknown_format", "unknown_key", "unknown_model", "unknown_provider",
    "unknown_reader", "unknown_setting", "unreadable", "unsupported_type", "withheld",
    "wrong_context", "wrong_kind",
])
# fmt: on
ErrorCode.__doc__ = """The `code` of an error; each equals its text, and what each means is under
[error codes](errors.md).

A setting that is wrong or missing adds codes such as `bad_NAME` and `missing_KEY`, and a server's
own codes come through as they are: `error.code` is any text.

    try:
        agent.ask("hi", session=chat)
    except Conflict as error:
        if error.code != ErrorCode.busy:
            raise
"""
