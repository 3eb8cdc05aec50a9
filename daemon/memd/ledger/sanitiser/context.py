"""Secrets known by where they stand: headers, URLs, cookies, command lines, password hashes.

Every repetition is bounded, since a pattern may be tried at each of many occurrences of its word.
"""

from __future__ import annotations

import base64
import binascii
import re

from memd.ledger.sanitiser.anchors import ASSIGN, AT, BLANK, COLON, QUOTE, SLASH, anchored
from memd.ledger.sanitiser.shape import Shape, token
from memd.ledger.sanitiser.values import is_reference, is_secret_value
from memd.ledger.sanitiser.words import is_wordy

_SCHEMES = (
    "bearer|basic|token|apikey|api-key|api-token|negotiate|ntlm|splunk|sso-key|key|genie-?key|jwt|dpop|bot|"
    "client-id|zoho-oauthtoken|x-api-key|access_token"
)
_PARTED_SCHEMES = "digest|aws4-hmac-sha256|oauth|hawk|signature|macaroon"
_PART = r"""[a-z_-]{1,32}=(?:\\{0,8}"[^"\\\r\n]{0,1024}\\{0,8}"|[^\s,"'`\\]{1,1024})"""
_PARTS = rf"(?:{_PART}(?:[ ]?,[ ]?|[ ])?){{1,24}}"  # nothing follows it, so it never looks back


def _is_bearer(_text: str, match: re.Match[str]) -> bool:
    value = match["s"]
    return not is_wordy(value) and not is_reference(value)


def _is_credential(_text: str, match: re.Match[str]) -> bool:
    value = match["s"]
    if is_reference(value):
        return False
    if match["parts"] is not None:
        return any(c.isdigit() for c in value)
    if match["scheme"] is not None:
        return not is_wordy(value)
    return is_secret_value(value, "token", "quoted")


def _is_user_and_password(value: str) -> bool:
    """Whether base64 holds `user:password`."""
    plain = value.replace("\\", "").replace("%3D", "=").replace("%3d", "=")
    try:
        decoded = base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except (binascii.Error, ValueError):
        return False
    return b":" in decoded and all(32 <= byte < 127 for byte in decoded)


def _is_basic(_text: str, match: re.Match[str]) -> bool:
    return _is_user_and_password(match["s"])


def _is_cookie(_text: str, match: re.Match[str]) -> bool:
    for pair in match["s"].split(";"):
        name, _, value = pair.strip().partition("=")
        if name.lower() in ("expires", "path", "domain", "max-age", "samesite"):
            continue
        if len(value) >= 8 and not is_wordy(value) and not is_reference(value):
            return True
    return False


_SAMPLES = ("pass", "password", "passwd", "pwd", "secret")  # what documentation puts there
_PORT_OR_QUERY = re.compile(r"[0-9]{1,5}[?#&/]|[^=]*[?&#][^=]*=")


def _is_url_password(_text: str, match: re.Match[str]) -> bool:
    value = match["s"]
    return not is_reference(value) and value.lower() not in _SAMPLES and _PORT_OR_QUERY.match(value) is None


def _is_url_token(_text: str, match: re.Match[str]) -> bool:
    return not is_wordy(match["s"])


def _is_login_password(_text: str, match: re.Match[str]) -> bool:
    return is_secret_value(match["s"], "password", "environment") and not is_wordy(match["s"])


_FETCHERS = re.compile(r"(?:curl|wget)\b", re.IGNORECASE)


def _is_fetcher_login(text: str, match: re.Match[str]) -> bool:
    """`-u user:password` means that only to programs that fetch; to others it is a user and a group."""
    line = text[max(0, match.start() - 400) : match.start()]
    value = match["s"]
    return (
        _FETCHERS.search(line) is not None
        and match["user"].isdigit() is False
        and not is_reference(value)
        and not is_reference(match["user"])
    )


def _is_joined_argument(_text: str, match: re.Match[str]) -> bool:
    """`-pVALUE` in one word, where `-port` and `-print` are no passwords."""
    value = match["s"]
    return not is_reference(value) and not is_wordy("p" + value)


def _is_argument(_text: str, match: re.Match[str]) -> bool:
    value = match["s"]
    return not is_reference(value) and not value.startswith("-")


AUTHORIZATION = anchored(
    "authorization",
    ("authorization",),
    rf"authorization{QUOTE}?\]?{BLANK}{{0,8}}(?:{ASSIGN}|,){BLANK}{{0,8}}[bfr]?{QUOTE}?"
    rf"(?P<s>(?P<parts>(?:{_PARTED_SCHEMES})[ ]{{1,4}}{_PARTS})"
    rf"|(?P<scheme>(?:{_SCHEMES})(?:{BLANK}|\+|=){{1,4}})?(?P<value>[^\s\"'`\\<>(),;&]{{8,1024}}+))",
    "Authorization: Token {word:40}",
    literals=("auth",),
    gate=rf"(?i)authorization{QUOTE}?\]?{BLANK}*(?:{ASSIGN}|,){BLANK}*[bfr]?{QUOTE}?[^\s\"'`\\<>(),;]",
    more=r"[^\s\"'`\\<>(),;&]",
    accept=_is_credential,
)

BEARER = anchored(
    "bearer_token",
    ("bearer",),
    rf"bearer(?:{BLANK}|\+|\\{{1,8}}u0020){{1,8}}(?P<s>[A-Za-z0-9._~+/=%-]{{16,1024}}+)",
    "curl -H 'X-Forwarded: Bearer {word:48}' https://example.com",
    gate=rf"(?i)bearer(?:{BLANK}|\+|\\+u0020)+[A-Za-z0-9._~+/=%-]{{16}}",
    more=r"[A-Za-z0-9._~+/=%-]",
    accept=_is_bearer,
)

BASIC = anchored(
    "basic_credentials",
    ("basic",),
    rf"basic(?:{BLANK}|\+|\\{{1,8}}u0020){{1,8}}(?P<s>(?:[A-Za-z0-9+/]|\\{{1,8}}/){{8,1024}}(?:=|%3[Dd]){{0,2}})",
    "Proxy-Authorization: Basic {login:24}",
    gate=rf"(?i)basic(?:{BLANK}|\+|\\+u0020)+[A-Za-z0-9+/\\]{{8}}",
    accept=_is_basic,
)

STORED_LOGIN = anchored(
    "basic_credentials",
    ("auth",),
    rf"auth{QUOTE}?{BLANK}{{0,8}}{ASSIGN}{BLANK}{{0,8}}{QUOTE}?(?P<s>(?:[A-Za-z0-9+/]|\\{{1,8}}/){{8,1024}}={{0,2}})",
    '{"auths":{"registry.example.com":{"auth":"{login:24}"}}}',
    gate=rf"(?i)auth{QUOTE}?{BLANK}*{ASSIGN}{BLANK}*{QUOTE}?[A-Za-z0-9+/\\]{{8}}",
    accept=_is_basic,
)

COOKIE = anchored(
    "cookie",
    ("cookie",),
    rf"cookie2?{QUOTE}?{BLANK}{{0,8}}(?:{COLON}|,|=){BLANK}{{0,8}}{QUOTE}?"
    r"(?P<s>[A-Za-z0-9!#$%&*+.^_|~-]{1,128}=[^\s\"'`\\;]{1,512}(?:;[ ]?[^\s\"'`\\;]{1,512}){0,16})",
    "Cookie: theme=dark; session={word:43}; lang=en",
    gate=rf"(?i)cookie2?{QUOTE}?{BLANK}*(?:{COLON}|,|=){BLANK}*{QUOTE}?[A-Za-z0-9!#$%&*+.^_|~-]+=[^\s\"'`\\;]",
    more=r"[^\s\"'`\\;]|;[ ]?",
    accept=_is_cookie,
)

SESSION_COOKIE = token(
    "cookie",
    r"(?:PHPSESSID|JSESSIONID|jsessionid|connect\.sid|ASP\.NET_SessionId|laravel_session)="
    r"(?P<s>[A-Za-z0-9%._~+/-]{16,})",
    ("PHPSESSID=", "JSESSIONID=", "jsessionid=", "connect.sid=", "ASP.NET_SessionId=", "laravel_session="),
    "https://example.com/app;jsessionid={upper:32}",
    is_bound=False,
)

URL_PASSWORD = anchored(
    "url_password",
    ("://", ":\\", "%3a"),
    rf"{COLON}{SLASH}{SLASH}(?P<user>(?:[^\s\"'`<>/\\:@?#%]|%(?!2f|3a|40)[0-9a-f]{{2}}){{0,200}}){COLON}"
    rf"(?P<s>[^\s\"'`<>/\\]{{1,256}}){AT}(?=[A-Za-z0-9\[{{$<%*_-])",
    "postgres://app:{alnum:24}@db.example.com:5432/app",
    literals=("://", ":\\", "%3a"),
    family="at",
    gate=rf"(?i){COLON}{SLASH}{SLASH}[^\s\"'`<>/\\:@?#]*{COLON}[^\s\"'`<>/\\]+{AT}",
    accept=_is_url_password,
)

URL_TOKEN = anchored(
    "url_token",
    ("://",),
    r"://(?P<s>[A-Za-z0-9_~.-]{20,256})@(?=[A-Za-z0-9\[])",
    "https://{alnum:40}@git.example.com/app.git",
    family="at",
    gate=r"://[A-Za-z0-9_~.-]{20,}@",
    accept=_is_url_token,
)

JDBC_LOGIN = anchored(
    "url_password",
    ("jdbc:oracle:",),
    r"jdbc:oracle:[a-z0-9]{1,16}:[^/\s:@\"']{1,64}/(?P<s>[^\s@\"']{1,128})@",
    "jdbc:oracle:thin:app/{alnum:16}@//db.example.com:1521/orcl",
    family="at",
    gate=r"(?i)jdbc:oracle:[a-z0-9]+:[^/\s:@\"']+/[^\s@\"']+@",
    accept=_is_argument,
)

NETRC = anchored(
    "password",
    ("login",),
    r"login[ \t\r\n]{1,16}[^\s]{1,128}[ \t\r\n]{1,16}(?:account[ ]\S{1,64}[ ])?"
    r"password[ \t\r\n]{1,16}(?P<s>[^\s\"']{6,256})",
    "machine api.example.com login robot password {alnum:20}",
    family="pass",
    gate=r"(?i)login[ \t\r\n]+[^\s]+[ \t\r\n]+(?:account[ ]\S+[ ])?password[ \t\r\n]+[^\s\"']{6}",
    accept=_is_login_password,
)

FETCH_LOGIN = anchored(
    "password",
    ("-u", "-user", "-proxy-user"),
    rf"-(?:u|user|proxy-user)(?:{BLANK}{{1,8}}|=|{QUOTE},{BLANK}{{0,8}}{QUOTE}){QUOTE}?"
    r"(?P<user>[^\s:\"'`\\]{1,128}):(?P<s>[^\s\"'`\\]{3,256})",
    "curl -u robot:{alnum:20} https://example.com/api",
    literals=("curl", "wget"),
    gate=rf"(?i)-(?:u|user|proxy-user)(?:{BLANK}+|=|{QUOTE},{BLANK}*{QUOTE}){QUOTE}?[^\s:\"'`\\]+:[^\s\"'`\\]{{3}}",
    accept=_is_fetcher_login,
)

MYSQL_PASSWORD = anchored(
    "password",
    ("mysql", "mariadb"),
    r"(?:mysql|mariadb)[a-z-]{0,12}[ ](?:[^\r\n|;&]{0,200}?[ ])??-p(?P<s>[^\s\"'`\\-][^\s\"'`\\]{3,128})",
    "mysql -u root -p{alnum:16} app",
    literals=(" -p",),
    gate=r"(?i)(?:mysql|mariadb)[a-z-]*[ ]",
    accept=_is_joined_argument,
)

LOGIN_PASSWORD = anchored(
    "password",
    ("sshpass", "docker login", "podman login", "helm registry login", "mongo", "redis-cli"),
    r"(?:sshpass|docker[ ]login|podman[ ]login|helm[ ]registry[ ]login|mongo[a-z]{0,8}|redis-cli)[ ]"
    rf"(?:[^\r\n|;&]{{0,200}}?[ ])??-[pa][ ]{{1,4}}{QUOTE}?(?P<s>[^\s\"'`\\-][^\s\"'`\\]{{3,128}})",
    "sshpass -p {alnum:16} ssh deploy@web.example.com",
    literals=(" -p", " -a"),
    gate=r"(?i)(?:sshpass|(?:docker|podman|registry)[ ]login|mongo[a-z]*|redis-cli)[ ]",
    accept=_is_argument,
)

OPENSSL_PASS = anchored(
    "password",
    ("pass:",),
    r"pass:(?P<s>[^\s\"'`\\$<{]{6,128})",
    "openssl rsa -in key.pem -passin pass:{alnum:16}",
    family="pass",
    gate=r"(?i)-pass(?:in|out)?[ =]\"?'?pass:[^\s\"'`\\$<{]{6}",
    accept=lambda text, match: (
        re.search(r"-pass(?:in|out)?[ =][\"']?\Z", text[max(0, match.start() - 12) : match.start()])
        is not None
    ),
)

HASH = token(
    "password_hash",
    r"\$(?:2[abxy]|[156y]|apr1|argon2(?:id|i|d)|scrypt|pbkdf2[a-z0-9-]*)\$[./A-Za-z0-9$=,+-]{20,}",
    ("$",),
    "$2b$12${alnum:53}",
    is_bound=False,
)

_PHRASE = r"(?:mnemonic(?:[ _-]?phrase)?|(?:seed|recovery)[ _-]?phrase)"

MNEMONIC = anchored(
    "seed_phrase",
    ("mnemonic", "seed", "recovery"),
    rf"{_PHRASE}{QUOTE}?{BLANK}{{0,8}}{ASSIGN}{BLANK}{{0,8}}{QUOTE}?"
    r"(?P<s>[a-z]{3,8}(?:[ ][a-z]{3,8}){11,23})",
    "mnemonic: {words:12}",
    literals=("mnemonic", "phrase"),
    gate=rf"(?i){_PHRASE}{QUOTE}?{BLANK}*{ASSIGN}{BLANK}*{QUOTE}?[a-z]+[ ][a-z]",
)

SHAPES: tuple[Shape, ...] = (
    AUTHORIZATION,
    BEARER,
    BASIC,
    STORED_LOGIN,
    COOKIE,
    SESSION_COOKIE,
    URL_PASSWORD,
    URL_TOKEN,
    JDBC_LOGIN,
    NETRC,
    FETCH_LOGIN,
    MYSQL_PASSWORD,
    LOGIN_PASSWORD,
    OPENSSL_PASS,
    HASH,
    MNEMONIC,
)
