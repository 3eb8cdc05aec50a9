"""Ordinary text stays as it is: code, logs, lock files, pictures, prose, values that are no secrets."""

from __future__ import annotations

import base64
import hashlib
import random
import sysconfig
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from memd.ledger.sanitiser import Sanitiser

SANITISER = Sanitiser()
PER_LINES = 1000

NO_SECRETS = [
    'password = os.environ["DB_PASSWORD"]',
    "password = getpass.getpass('Password: ')",
    'password: str = ""',
    "token: str",
    "token: Optional[str] = None",
    "def login(user: str, password: str, token: Token = None) -> Session:",
    "self.token = token",
    "token = next(tokens)",
    "token = tokens[0]",
    "token = secrets.token_hex(16)",
    "password=password, token=self.token)",
    "api_key=None",
    "api_key = config.api_key",
    "apiKey: process.env.OPENAI_API_KEY,",
    'const apiKey = "<your-key>";',
    'api_key = "YOUR_API_KEY"',
    'api_key: "your-api-key-here"',
    "API_KEY=${API_KEY}",
    "API_KEY=$API_KEY",
    "export TOKEN=$(cat /run/secrets/token)",
    "TOKEN={{ secrets.TOKEN }}",
    "GITHUB_TOKEN: ${{ secrets.GITHUB_TOKEN }}",
    "password: ***",
    "password=********",
    "password: [REDACTED:password]",
    "Authorization: Bearer ${TOKEN}",
    "Authorization: Bearer <token>",
    "Authorization: `Bearer ${token}`",
    'headers = {"Authorization": f"Bearer {token}"}',
    "Use bearer authentication-tokens for this.",
    "The Basic authentication scheme is basic functionality.",
    "postgres://user:${PASSWORD}@localhost:5432/app",
    "postgres://user:password@localhost:5432/app",
    "http://localhost:3000/@types/node",
    "git@github.com:someone/project.git",
    "primary_key=True, foreign_key='users.id', sort_key=lambda row: row.created_at_utc",
    'cache_key = "user:1234:profile"',
    'public_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0o1yPq someone@example"',
    "PWD=/home/someone/project",
    "OLDPWD=/tmp/build-2024",
    "max_tokens: 4096, total_tokens=128000",
    "pad_token='[PAD]', eos_token=\"<|endoftext|>\"",
    'next_page_token: ""',
    "pass: 1234 tests, fail: 0",
    'if "-----BEGIN RSA PRIVATE KEY-----" in text: raise ValueError("a private key")',
    "commit 3f9a8b7c6d5e4f30211203948576abcdef012345",
    "session 550e8400-e29b-41d4-a716-446655440000 resumed",
    "integrity sha512-oBTpMxzFyQFb5mTJCHJUg7Ae7kYBqIaYF2Xy0qgyyUNSKcyyqWSFPhOWTvO4WnPW2yAw==",
    'etag: W/"5f3c-18b9d2"',
    "docker run --user 1000:1000 -p 8080:80 image",
    "ssh -p 2222 host; mysql -u root -p app",
    "sk-toggleable__label-arrow sk-fading-circle-container",
    "ecdsa sk-ecdsa-sha2-nistp256@openssh.com",
    "risk-assessment-for-the-next-quarter task-sk-list",
    "npm_config_registry npm_lifecycle_event hf_transformers_cache",
    "Passwords must be at least 8 characters. Forgot your password? The token is invalid or expired.",
    'label: "Password", placeholder: "Enter your password"',
    "x = 1//some_rather_long_python_name_here",
    "Content-Type: application/json; cookie: string;",
    "document.cookie = 'theme=dark; path=/'",
]


@pytest.mark.parametrize("text", NO_SECRETS)
def test_what_is_no_secret_stays(text: str) -> None:
    assert SANITISER.scrub(text) == text


SECRETS = [
    ("DB_PASSWORD=hunter2hunter", "hunter2hunter"),
    ("export TOKEN=Zk93kdLq02mP", "Zk93kdLq02mP"),
    ("password: 'hunter22'", "hunter22"),
    ('{"password": "it\\"s9secret"}', "s9secret"),
    ("--password hunter2x9", "hunter2x9"),
    ('["--api-key", "Zk93kdLq02mP"]', "Zk93kdLq02mP"),
    ("ENV API_TOKEN Zk93kdLq02mP", "Zk93kdLq02mP"),
    ('secrets["API_KEY"] = "Zk93kdLq02mP"', "Zk93kdLq02mP"),
    ("os.environ.get('API_KEY', 'Zk93kdLq02mP')", "Zk93kdLq02mP"),
    ('password: str = "hunter22x"', "hunter22x"),
    ("- name: DB_PASSWORD\n  value: hunter2x9\n", "hunter2x9"),
    ('{"name": "API_KEY", "value": "Zk93kdLq02mP"}', "Zk93kdLq02mP"),
    ("<password>hunter22</password>", "hunter22"),
    ("| api_key | a8f3k2m9x1 |", "a8f3k2m9x1"),
    ("the password is Tr0ub4dor&3", "Tr0ub4dor"),
    ("%22password%22%3A%22hunter22x%22", "hunter22x"),
    ("\\u0022token\\u0022:\\u0022Zk93kdLq02mP\\u0022", "Zk93kdLq02mP"),
    ("&quot;token&quot;: &quot;Zk93kdLq02mP&quot;", "Zk93kdLq02mP"),
    ("https://example.com/?a=1&access_token=Zk93kdLq02mP&b=2", "Zk93kdLq02mP"),
    ("redis://:pw12pw@cache:6379/0", "pw12pw"),
    ("mongodb+srv://app:p%40ss9@cluster0.example.net/db", "p%40ss9"),
    ("jdbc:mysql://db/app?user=app&password=abc12345&ssl=1", "abc12345"),
    ("Driver={SQL};Server=db;Uid=app;Pwd=hunter22x;", "hunter22x"),
    ("curl -u robot:s3cretpw https://example.com", "s3cretpw"),
    ("curl -H 'X-Api-Key: Zk93kdLq02mP' https://example.com", "Zk93kdLq02mP"),
    ("Proxy-Authorization: Basic cm9ib3Q6czNjcmV0cHc=", "cm9ib3Q6czNjcmV0cHc"),
    (
        'Authorization: Digest username="robot", response="6629fae49393a05397450978507c4ef1"',
        "6629fae49393a0539",
    ),
    ("Set-Cookie: sid=Zk93kdLq02mP; Path=/; HttpOnly", "Zk93kdLq02mP"),
    ("PrivateKey = yAnz5TF+lXXJte14tji3zlMNq+hd2rYUIgJBgB3fBmk=", "yAnz5TF"),
    ('passphrase: "correct horse battery staple"', "battery"),
    ("mysql -u root -pSecr3tX app", "Secr3tX"),
    ("PGPASSWORD=hunter2x psql", "hunter2x"),
    ("//registry.npmjs.org/:_authToken=Zk93kdLq02mP", "Zk93kdLq02mP"),
]


@pytest.mark.parametrize(("text", "secret"), SECRETS)
def test_what_is_assigned_to_a_telling_name_goes(text: str, secret: str) -> None:
    scrubbed = SANITISER.scrub(text)
    assert secret not in scrubbed
    assert "[REDACTED:" in scrubbed
    assert Sanitiser(gate="stdlib").scrub(text) == scrubbed


def test_the_scheme_and_the_name_are_kept() -> None:
    assert SANITISER.scrub("DB_PASSWORD=hunter2hunter") == "DB_PASSWORD=[REDACTED:password]"
    assert SANITISER.scrub("redis://:pw12pw@cache/0") == "redis://:[REDACTED:url_password]@cache/0"


# ------------------------------------------------------------------------------ ordinary lines, counted


def _python() -> str:
    folder = Path(sysconfig.get_paths()["stdlib"])
    files = sorted(folder.glob("*.py")) + sorted(folder.glob("email/*.py")) + sorted(folder.glob("http/*.py"))
    return "\n".join(path.read_text(encoding="utf-8", errors="replace") for path in files)


def _digest(rng: random.Random, name: str) -> str:
    return hashlib.new(name, rng.randbytes(20)).hexdigest()


def _logs() -> str:
    rng = random.Random("logs")
    lines = []
    for n in range(6000):
        sha1, sha256 = _digest(rng, "sha1"), _digest(rng, "sha256")
        request = uuid.UUID(int=rng.getrandbits(128))
        kinds = [
            f"2026-11-0{n % 9 + 1}T12:{n % 60:02}:07.123Z INFO request id={request} took 12ms",
            f"commit {sha1} (HEAD -> main, origin/main)",
            f"[{n}] GET /assets/app-{sha1[:10]}.js?v={n} 200 {rng.randrange(10**6)}",
            f"sha256:{sha256}: Pull complete",
            f"Nov 12 10:00:0{n % 10} host kernel: [{n}.000123] eth0: link up, key=value token",
            f"DEBUG cache.get key=user:{n}:profile hit=true session_id={request}",
            f"  at Object.resolveToken (/app/node_modules/auth/lib/token.js:{n}:12)",
            f"{sha1[:7]}..{sha256[:7]}  main -> main",
            f"index {sha1[:10]}..{sha256[:10]} 100644",
            f'10.0.{n % 256}.7 - - [12/Nov/2026:10:00:00 +0000] "POST /login HTTP/1.1" 302 0',
            f"PASSED tests/test_password.py::test_token_{n} in 0.0{n % 10}s",
            f"WARN password check failed for user {n}: invalid token, retry in 5s",
        ]
        lines.append(rng.choice(kinds))
    return "\n".join(lines)


def _lock_files() -> str:
    rng = random.Random("locks")
    lines = []
    for number in range(3000):
        digest = base64.b64encode(rng.randbytes(64)).decode()
        lines += [
            f'    "node_modules/package-{number}": {{',
            f'      "resolved": "https://registry.npmjs.org/package-{number}/-/package-{number}-1.{number}.0.tgz",',
            f'      "integrity": "sha512-{digest}"',
            f'checksum = "{_digest(rng, "sha256")}"',
            f"    --hash=sha256:{_digest(rng, 'sha256')} \\",
            f"golang.org/x/mod v0.{number}.0 h1:{base64.b64encode(rng.randbytes(32)).decode()}",
        ]
    return "\n".join(lines)


def _pictures() -> str:
    rng = random.Random("pictures")
    lines = []
    for _ in range(300):
        picture = base64.b64encode(rng.randbytes(6000)).decode()
        lines.append(f'<img src="data:image/png;base64,{picture}">')
        lines += [picture[i : i + 76] for i in range(0, 3040, 76)]
    return "\n".join(lines)


def _minified() -> str:
    rng = random.Random("minified")
    names = "abcdefghijklmnopqrstuvwxyz"
    pieces = [
        "function {a}({b},{c}){{return {b}.token||{c}[{n}]}}",
        "var {a}={b}.password?{c}:null;",
        '{a}.key="{b}";{c}={{secret:!0,token:{a}.{b},apiKey:{c}}};',
        "if({a}&&{b}!={c})throw new Error('{a}: invalid key');",
        "{a}.exports={{type:'Token',value:{n},key:{b}}};",
        "export{{{a} as Token,{b} as Password}};",
    ]
    return "\n".join(
        "".join(
            rng.choice(pieces).format(
                a=rng.choice(names), b=rng.choice(names), c=rng.choice(names), n=rng.randrange(999)
            )
            for _ in range(8)
        )
        for _ in range(3000)
    )


_WORDS = """
the a password token key secret of and is was to in for with user users must be reset when login fails
authorization bearer basic cookie header value values stored encrypted never shared private public access
service account credentials rotate every ninety days please see our documentation before you begin
"""


def _prose() -> str:
    rng = random.Random("prose")
    words = _WORDS.split()
    return "\n".join(" ".join(rng.choices(words, k=12)).capitalize() + "." for _ in range(4000))


@pytest.mark.parametrize("corpus", [_python, _logs, _lock_files, _pictures, _minified, _prose])
def test_fewer_than_one_false_mark_in_a_thousand_ordinary_lines(corpus: Callable[[], str]) -> None:
    text = corpus()
    lines = text.count("\n") + 1
    marks = [text[mark.start - 40 : mark.end + 10] for mark in SANITISER.marks(text)]
    assert lines >= 3000
    assert len(marks) * PER_LINES < lines, marks[:20]
