"""How each real program is pointed at the scripted model, kept quiet and asked for one turn. Pure.

source  Claude Code 2.1.197, codex-cli 0.171.0, OpenCode 1.18.33, Pi 1.6.0, OMP 18.2.3, Kimi Code 2.1.0,
        Command Code 1.64.0, Grok Build 0.2.111, run 2026-11
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from real.model import PORT
from real.namespace import HOME

BASE = f"http://127.0.0.1:{PORT}"
_TOKEN = "scripted-not-a-key"
_CONTEXT = 200_000

GIT_CONFIG = """[user]
	name = Dev
	email = dev@example.invalid
[init]
	defaultBranch = main
[safe]
	directory = *
"""


@dataclass(frozen=True)
class Harness:
    """One program.

    environment  what it is started with
    settings     for the folders it will be started in, the files that answer its first questions:
                 path in the world to text
    turn         the argv for one prompt and extra arguments, no screen
    screen       the argv for a session on a terminal
    ready        a pattern on the screen once it takes input; empty: not known
    leave        what to type to quit; empty: Ctrl-C on an empty line
    """

    name: str
    environment: Mapping[str, str]
    settings: Callable[[Sequence[str]], Mapping[str, str]]
    turn: Callable[[str, Sequence[str]], tuple[str, ...]]
    screen: tuple[str, ...]
    ready: str = ""
    leave: str = ""


def claude_login(cwds: Sequence[str], folder: str = "") -> dict[str, str]:
    """The files of one login; `folder` is its CLAUDE_CONFIG_DIR, empty for the one in ~/.claude."""
    state = {
        "hasCompletedOnboarding": True,
        "theme": "dark",
        "numStartups": 3,
        "lastOnboardingVersion": "9.9.9",
        "projects": {cwd: {"hasTrustDialogAccepted": True} for cwd in cwds},
    }
    # the one login whose state file does not lie in its own folder
    return {f"{folder or HOME}/.claude.json": json.dumps(state, indent=2)}


def _codex_settings(cwds: Sequence[str]) -> dict[str, str]:
    trusted = "".join(f'\n[projects."{cwd}"]\ntrust_level = "trusted"\n' for cwd in cwds)
    return {
        f"{HOME}/.codex/config.toml": f"""model = "gpt-5"
model_provider = "scripted"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false

[analytics]
enabled = false

[model_providers.scripted]
name = "scripted"
base_url = "{BASE}/v1"
wire_api = "responses"
env_key = "SCRIPTED_API_KEY"
supports_websockets = false
request_max_retries = 0
stream_max_retries = 0
{trusted}"""
    }


def _opencode_settings(_: Sequence[str]) -> dict[str, str]:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "scripted",
        "options": {"baseURL": f"{BASE}/v1", "apiKey": _TOKEN},
        "models": {
            "scripted-model": {"name": "scripted", "limit": {"context": _CONTEXT, "output": 8000}},
            "scripted-small": {"name": "scripted small"},
        },
    }
    config = {
        "$schema": "https://opencode.ai/config.json",
        "model": "scripted/scripted-model",
        "small_model": "scripted/scripted-small",
        "autoupdate": False,
        "share": "disabled",
        "provider": {"scripted": provider},
    }
    return {f"{HOME}/.config/opencode/opencode.json": json.dumps(config, indent=2)}


def _pi_provider() -> dict[str, object]:
    model = {"id": "scripted-model", "name": "scripted", "contextWindow": _CONTEXT, "maxTokens": 8000}
    return {"baseUrl": f"{BASE}/v1", "api": "openai-completions", "apiKey": _TOKEN, "models": [model]}


def _pi_settings(_: Sequence[str]) -> dict[str, str]:
    return {
        f"{HOME}/.pi/agent/models.json": json.dumps({"providers": {"scripted": _pi_provider()}}, indent=2)
    }


def _omp_settings(_: Sequence[str]) -> dict[str, str]:
    # JSON is YAML
    return {
        f"{HOME}/.omp/agent/models.yml": json.dumps({"providers": {"scripted": _pi_provider()}}, indent=2)
    }


def _kimi_settings(cwds: Sequence[str]) -> dict[str, str]:
    config = f"""default_model = "scripted"
telemetry = false

[providers.scripted]
type = "openai"
base_url = "{BASE}/v1"
api_key = "{_TOKEN}"

[models.scripted]
provider = "scripted"
model = "scripted-model"
max_context_size = {_CONTEXT}
"""
    return {
        f"{HOME}/.kimi-code/config.toml": config,
        f"{HOME}/.kimi-code/tui.toml": "[upgrade]\nauto_install = false\n",
        **{f"{HOME}/.kimi-code/workspace-trust/{_kimi_folder(cwd)}": _kimi_trust(cwd) for cwd in cwds},
    }


def _kimi_folder(cwd: str) -> str:
    return f"wd_{cwd.rsplit('/', 1)[-1].lower()}_{hashlib.sha256(cwd.encode()).hexdigest()[:12]}"


def _kimi_trust(cwd: str) -> str:
    return json.dumps({"root": cwd, "trustedAt": 1_790_000_000_000})


def _command_code_settings(_: Sequence[str]) -> dict[str, str]:
    provider = {
        "baseURL": f"{BASE}/v1",
        "apiKey": False,
        "models": {"scripted-model": {"contextWindow": _CONTEXT}},
    }
    return {
        f"{HOME}/.commandcode/providers.json": json.dumps({"provider": {"scripted": provider}}, indent=2),
        f"{HOME}/.commandcode/config.json": json.dumps({"localOnly": True}),
    }


def _grok_settings(_: Sequence[str]) -> dict[str, str]:
    config = f"""[models]
default = "scripted"

[features]
telemetry = false

[telemetry]
trace_upload = false

[model.scripted]
model = "scripted-model"
base_url = "{BASE}/v1"
api_key = "{_TOKEN}"
context_window = {_CONTEXT}
"""
    return {f"{HOME}/.grok/config.toml": config}


_PI_MODEL = ("--provider", "scripted", "--model", "scripted-model")
_COMMAND_CODE = (
    "command-code",
    "--no-auto-update",
    "--skip-onboarding",
    "-t",
    "-m",
    "scripted/scripted-model",
)

HARNESSES: Mapping[str, Harness] = {
    harness.name: harness
    for harness in (
        Harness(
            "claude",
            {
                "ANTHROPIC_BASE_URL": BASE,
                "ANTHROPIC_AUTH_TOKEN": _TOKEN,
                "DISABLE_TELEMETRY": "1",
                "DISABLE_ERROR_REPORTING": "1",
                "DISABLE_AUTOUPDATER": "1",
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            },
            claude_login,
            lambda prompt, args: ("claude", "--permission-mode", "bypassPermissions", *args, "-p", prompt),
            ("claude",),
            r"for shortcuts",
            "/exit",
        ),
        Harness(
            "codex",
            {"SCRIPTED_API_KEY": _TOKEN},
            _codex_settings,
            # words that choose a session ("resume ID", "fork ID") go right after `exec`
            lambda prompt, args: ("codex", "exec", "--skip-git-repo-check", *args, prompt),
            ("codex",),
            r"Ask Codex",
            "/quit",
        ),
        Harness(
            "opencode",
            {
                "OPENCODE_DISABLE_AUTOUPDATE": "1",
                "OPENCODE_DISABLE_MODELS_FETCH": "1",
                "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
                "OPENCODE_DISABLE_SHARE": "1",
                "npm_config_fetch_retries": "0",  # else a plug-in costs 73 s at every start, offline
            },
            _opencode_settings,
            lambda prompt, args: ("opencode", "run", *args, prompt),
            ("opencode",),
            r"Ask anything",
        ),
        Harness(
            "pi",
            {"PI_OFFLINE": "1", "PI_TELEMETRY": "0", "PI_SKIP_VERSION_CHECK": "1"},
            _pi_settings,
            lambda prompt, args: ("pi", *_PI_MODEL, *args, "-p", prompt),
            ("pi", *_PI_MODEL),
            r"escape interrupt",
            "/quit",
        ),
        Harness(
            "omp",
            {"OMP_SKIP_SETUP": "1", "PI_OFFLINE": "1", "PI_TELEMETRY": "0"},
            _omp_settings,
            lambda prompt, args: ("omp", "--model", "scripted/scripted-model", *args, "-p", prompt),
            ("omp", "--model", "scripted/scripted-model"),
            r"No recent sessions|Recent sessions",
            "/exit",
        ),
        Harness(
            "kimi",
            {"KIMI_CODE_NO_AUTO_UPDATE": "1"},
            _kimi_settings,
            lambda prompt, args: ("kimi", *args, "-p", prompt),
            ("kimi",),
            r"Send /help",
            "/exit",
        ),
        Harness(
            "command-code",
            {
                "CMD_LOCAL_ONLY": "1",
                "DO_NOT_TRACK": "1",
                "COMMANDCODE_SKIP_UPDATES": "1",
                "COMMAND_CODE_API_KEY": _TOKEN,  # any value: without one it asks for a login
            },
            _command_code_settings,
            lambda prompt, args: (*_COMMAND_CODE, "--yolo", *args, "-p", prompt),
            _COMMAND_CODE,
            r"for shortcuts",
            "/exit",
        ),
        Harness(
            "grok",
            {},
            _grok_settings,
            lambda prompt, args: ("grok", "-m", "scripted", "--always-approve", *args, "-p", prompt),
            ("grok", "-m", "scripted", "--always-approve"),
            r"Shift\+Tab:mode",
            "/quit",
        ),
    )
}
