"""Keys of code hosts, registries, chats, payment, mail and monitoring, by the form each vendor gives its own.

source  the vendors' pages on their key formats, read 2026-11
"""

from __future__ import annotations

from memd.ledger.sanitiser.shape import Shape, grown, token
from memd.ledger.sanitiser.words import is_wordy

_GITLAB_KINDS = ("pat", "dt", "rt", "rtr", "ptt", "ft", "soat", "cbt", "imt", "agent", "oas", "wt", "ffct")
_GITLAB = rf"gl(?:{'|'.join(_GITLAB_KINDS)})-[A-Za-z0-9_-]{{16,}}(?:\.[A-Za-z0-9_-]{{2,}})*"
_GITLAB_PREFIXES = tuple(f"gl{kind}-" for kind in _GITLAB_KINDS)
_DISCORD = r"[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}"
_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"


def _is_no_word(matched: str) -> bool:
    return not is_wordy(matched)


def _is_facebook(matched: str) -> bool:
    """Base64 of zeros begins alike: a real one mixes digits and letters."""
    tail = matched[3:]
    return not is_wordy(tail) and len(set(tail)) > 8 and any(c.isdigit() for c in tail)


def _is_telegram(matched: str) -> bool:
    key = matched.partition(":")[2]
    return len(key) <= 48 and not is_wordy(key)


def _is_twilio(matched: str) -> bool:
    return len(matched) == 34


def _is_jwt(matched: str) -> bool:
    """Three segments, or two that both hold JSON: a token whose signature was cut off."""
    segments = matched.split(".")
    return len(segments) > 2 or (len(segments) == 2 and segments[1].startswith("eyJ"))


CODE: tuple[Shape, ...] = (
    token(
        "github_token",
        r"gh[pousr]_[A-Za-z0-9_]{20,}(?:\.[A-Za-z0-9_-]{8,})*",
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
        "gh" + "p_{alnum:36}",
        is_bound=False,
    ),
    token(
        "github_pat",
        r"github_pat_[A-Za-z0-9_]{20,}",
        ("github_pat_",),
        "github_pat_{alnum:22}_{alnum:59}",
        is_bound=False,
    ),
    token("gitlab_token", _GITLAB, _GITLAB_PREFIXES, "gl" + "pat-{word:20}"),
    token(
        "atlassian_token",
        r"AT(?:ATT|CTT)3[A-Za-z0-9_=-]{20,}",
        ("TT3",),
        "ATATT3xFfGF0{word:180}",
    ),
    token("bitbucket_password", r"ATBB[A-Za-z0-9]{24,}", ("ATBB",), "ATBB{alnum:32}", family="long"),
    token(
        "npm_token", r"npm_[A-Za-z0-9]{20,}", ("npm_",), "npm_{alnum:36}", family="tail", accept=_is_no_word
    ),
    token(
        "pypi_token",
        r"pypi-[A-Za-z0-9_-]{32,}",
        ("pypi-",),
        "pypi-AgEIcHlwaS5vcmc{word:150}",
        accept=_is_no_word,
    ),
    token("rubygems_key", r"rubygems_[0-9a-f]{32,}", ("rubygems_",), "rubygems_{hex:48}", family="tail"),
    token(
        "crates_token", r"cio[A-Za-z0-9]{32,}", ("cio",), "cio{alnum:32}", family="long", accept=_is_no_word
    ),
    token("nuget_key", r"oy2[a-z0-9]{43,}", ("oy2",), "oy2{lower:43}", family="long"),
    token("docker_token", r"dckr_[op]at_[A-Za-z0-9_-]{20,}", ("dckr_",), "dckr_pat_{word:27}"),
    token("jfrog_key", r"AKCp[A-Za-z0-9]{60,}", ("AKCp",), "AKCp{alnum:69}", family="long"),
    token(
        "sourcegraph_token",
        r"sgp_(?:[0-9a-f]{16}_|local_)?[0-9a-f]{32,}",
        ("sgp_",),
        "sgp_{hex:40}",
        family="tail",
    ),
    token("buildkite_token", r"bk(?:ua|pt|at|ct)_[A-Za-z0-9]{20,}", ("bk",), "bkua_{hex:40}", family="tail"),
    token(
        "circleci_token",
        r"CCIP(?:AT|RJ)_[A-Za-z0-9_-]{20,}",
        ("CCIPAT_", "CCIPRJ_"),
        "CCIPAT_{alnum:22}_{hex:40}",
    ),
    token("sonar_token", r"sq[apu]_[0-9a-f]{32,}", ("sq",), "squ_{hex:40}", family="tail"),
    token(
        "postman_key",
        r"PMAK-[0-9a-f]{20,}-[0-9a-f]{30,}",
        ("PMAK-",),
        "PMAK-{hex:24}-{hex:34}",
        family="tail",
    ),
    token("deno_token", r"dd[opw]_[A-Za-z0-9]{32,}", ("dd",), "ddp_{alnum:36}", family="tail"),
    token(
        "private_integration_token",
        f"p(?:it|at-(?:na|eu|ap)[0-9])-{_UUID}",
        ("pit-", "pat-"),
        "pit-{uuid:1}",
    ),
)

CHAT: tuple[Shape, ...] = (
    token(
        "slack_token",
        r"xox[abeprs](?:\.xox[abeprs])?-[A-Za-z0-9-]{10,}",
        tuple(f"xox{kind}-" for kind in "abeprs"),
        "xo" + "xb-{digit:12}-{digit:12}-{alnum:24}",
    ),
    token(
        "slack_token",
        r"xapp-[A-Za-z0-9-]{10,}",
        ("xapp-",),
        "xa" + "pp-1-A{upper:10}-{digit:13}-{hex:64}",
        accept=_is_no_word,
    ),
    token(
        "slack_webhook",
        r"hooks\.slack\.com(?:\\{0,4}/|%2[Ff])(?:services|workflows|triggers)(?P<s>(?:\\{0,4}/|%2[Ff])[A-Za-z0-9+/%\\_-]{16,})",
        ("slack.com",),
        "https://hooks.slack.com/serv" + "ices/T{upper:9}/B{upper:9}/{alnum:24}",
        is_bound=False,
    ),
    token(
        "discord_token",
        _DISCORD,
        (".",),
        "M{alnum:25}.{word:6}.{word:38}",
        family="dotted",
        gate=r"\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27}",
    ),
    token(
        "discord_webhook",
        r"discord(?:app)?\.com(?:\\{0,4}/|%2[Ff])api(?:\\{0,4}/|%2[Ff])(?:v[0-9]{1,2}(?:\\{0,4}/|%2[Ff]))?webhooks"
        r"(?P<s>(?:\\{0,4}/|%2[Ff])[0-9]{10,}(?:\\{0,4}/|%2[Ff])[A-Za-z0-9_-]{20,})",
        ("webhook",),
        "https://discord.com/api/web" + "hooks/{digit:19}/{word:68}",
        is_bound=False,
    ),
    token(
        "teams_webhook",
        r"webhook\.office\.com(?P<s>/webhookb2/[A-Za-z0-9@/._-]{32,})",
        ("webhook",),
        "https://acme.webhook.office.com/webhookb2/{uuid:1}@{uuid:1}/IncomingWebhook/{hex:32}/{uuid:1}",
        is_bound=False,
    ),
    token(
        "telegram_token",
        r"[0-9]{6,10}:[A-Za-z0-9_-]{34,}",
        (":",),
        "{digit:10}:AA{word:33}",
        family="dotted",
        accept=_is_telegram,
        gate=r"[0-9]:[A-Za-z0-9_-]{34}",
    ),
    token(
        "facebook_token",
        r"EAA[A-Za-z0-9]{20,}",
        ("EAA",),
        "EAA{alnum:120}",
        family="long",
        is_alone=True,
        accept=_is_facebook,
    ),
)

MONEY: tuple[Shape, ...] = (
    token(
        "stripe_key",
        r"[rs]k_(?:live|test|prod)_[A-Za-z0-9]{16,}",
        ("k_live_", "k_test_", "k_prod_"),
        "sk_li" + "ve_{alnum:24}",
        family="tail",
    ),
    token("stripe_webhook_secret", r"whsec_[A-Za-z0-9+/=]{20,}", ("whsec_",), "whsec_{alnum:32}"),
    token(
        "shopify_token",
        r"shp(?:at|ca|pa|ss|tka)_[0-9A-Za-z]{20,}",
        ("shp",),
        "shp" + "at_{hex:32}",
        family="tail",
    ),
    token(
        "square_token",
        r"sq0(?:atp|csp|idp)-[A-Za-z0-9_-]{20,}",
        ("sq0atp-", "sq0csp-", "sq0idp-"),
        "sq0csp-{word:43}",
    ),
    token(
        "square_token",
        r"EAAA[A-Za-z0-9_-]{56,}",
        ("EAAA",),
        "EAAA{word:60}",
        family="base64",
        is_alone=True,
        accept=_is_facebook,
    ),
    token(
        "braintree_token",
        r"access_token\$(?:production|sandbox)\$[0-9a-z]{16}\$[0-9a-f]{32}",
        ("access_token$",),
        "access_token$production${lower:16}${hex:32}",
    ),
    token("razorpay_key", r"rzp_(?:live|test)_[A-Za-z0-9]{14,}", ("rzp_",), "rzp_live_{alnum:14}"),
    token(
        "flutterwave_key",
        r"FLWSECK(?:_TEST)?-[A-Za-z0-9-]{20,}",
        ("FLWSECK-", "FLWSECK_"),
        "FLWSECK-{hex:32}-X",
    ),
)

MAIL: tuple[Shape, ...] = (
    token(
        "twilio_key",
        r"SK[0-9a-f]{32,}",
        ("SK",),
        "S" + "K{hex:32}",
        family="long",
        is_whole=True,
        accept=_is_twilio,
    ),
    token(
        "sendgrid_key",
        r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",
        ("SG.",),
        "SG" + ".{word:22}.{word:43}",
        family="dot",
    ),
    token("mailgun_key", r"key-[0-9a-f]{32,}", ("key-",), "key-{hex:32}", family="tail"),
    grown(
        "mailgun_key",
        r"-[0-9a-f]{8}-[0-9a-f]{8}",
        ("-",),
        "{hex:32}-{hex:8}-{hex:8}",
        before="0-9a-f",
        least=32,
        most=32,
        family="long",
    ),
    grown(
        "mailchimp_key",
        r"-us[0-9]{1,2}",
        ("-us",),
        "{hex:32}-us12",
        before="0-9a-f",
        least=32,
        most=32,
        family="long",
    ),
    token(
        "brevo_key",
        r"x(?:keysib|smtpsib)-[0-9a-f]{40,}-[A-Za-z0-9]{12,}",
        ("sib-",),
        "xkeysib-{hex:64}-{alnum:16}",
        family="tail",
    ),
    token(
        "resend_key",
        r"re_[A-Za-z0-9]{6,12}_[A-Za-z0-9]{20,}",
        ("re_",),
        "re_{alnum:8}_{alnum:24}",
        family="tail",
        accept=_is_no_word,
    ),
)

WORK: tuple[Shape, ...] = (
    token(
        "linear_key", r"lin_(?:api|oauth|wh)_[A-Za-z0-9]{20,}", ("lin_",), "lin_api_{alnum:40}", family="tail"
    ),
    token("notion_token", r"ntn_[A-Za-z0-9]{20,}", ("ntn_",), "ntn_{alnum:46}", family="tail"),
    token(
        "notion_token",
        r"secret_[A-Za-z0-9]{32,}",
        ("secret_",),
        "secret_{alnum:43}",
        family="tail",
        accept=_is_no_word,
    ),
    token(
        "figma_token",
        r"fig(?:d|o|u|or|ur)_[A-Za-z0-9_-]{20,}",
        ("figd_", "figo_", "figu_", "figor_", "figur_"),
        "figd_{word:40}",
        accept=_is_no_word,
    ),
    token(
        "airtable_token",
        r"pat[A-Za-z0-9]{14}\.[0-9a-f]{40,}",
        ("pat",),
        "pat{alnum:14}.{hex:64}",
        family="long",
    ),
    token("clickup_token", r"pk_[0-9]{4,}_[A-Z0-9]{24,}", ("pk_",), "pk_{digit:8}_{upper:32}", family="tail"),
    token("contentful_token", r"CFPAT-[A-Za-z0-9_-]{32,}", ("CFPAT-",), "CFPAT-{word:43}"),
    token("typeform_token", r"tfp_[A-Za-z0-9_.=-]{30,}", ("tfp_",), "tfp_{word:59}"),
    token("dropbox_token", r"sl\.(?:u\.)?[A-Za-z0-9_-]{60,}", ("sl.",), "sl.{word:136}", family="dot"),
    token(
        "mapbox_token",
        r"sk\.eyJ[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{16,}",
        ("sk.eyJ",),
        "sk.eyJ{word:80}.{word:22}",
        family="dot",
    ),
)

WATCH: tuple[Shape, ...] = (
    token(
        "newrelic_key",
        r"NR(?:AK|JS|II|AA|IQ|SP|RA)-[A-Za-z0-9_-]{19,}",
        tuple(f"NR{kind}-" for kind in ("AK", "JS", "II", "AA", "IQ", "SP", "RA")),
        "NRAK-{upper:27}",
    ),
    token("datadog_key", r"ddapp_[A-Za-z0-9]{30,}", ("ddapp_",), "ddapp_{alnum:34}", family="tail"),
    token("sentry_token", r"sntry[su]_[A-Za-z0-9+/=_-]{20,}", ("sntrys_", "sntryu_"), "sntryu_{hex:64}"),
    token(
        "sentry_dsn",
        r"://(?P<s>[0-9a-f]{32}(?::[0-9a-f]{32})?)@",
        ("://",),
        "https://{hex:32}@o{digit:6}.ingest.sentry.io/{digit:7}",
        family="long",
        is_bound=False,
    ),
    token("grafana_token", r"gl(?:sa|c)_[A-Za-z0-9+/=_]{20,}", ("glsa_", "glc_"), "glsa_{alnum:32}_{hex:8}"),
    token("posthog_key", r"ph[sx]_[A-Za-z0-9]{20,}", ("ph",), "phx_{alnum:43}", family="tail"),
    token("honeycomb_key", r"hc[a-z]{2}k_[A-Za-z0-9]{30,}", ("hc",), "hcaik_{lower:58}", family="tail"),
    token("launchdarkly_key", f"(?:sdk|api)-{_UUID}", ("sdk-", "api-"), "sdk-{uuid:1}"),
)

# No left bound: `eyJ` is the beginning of JSON in base64, wherever it stands
JWT = token(
    "jwt",
    r"eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]{8,}){0,4}",
    ("eyJ",),
    "eyJ{word:32}.eyJ{word:120}.{word:43}",
    is_bound=False,
    accept=_is_jwt,
)

SHAPES: tuple[Shape, ...] = (*CODE, *CHAT, *MONEY, *MAIL, *WORK, *WATCH, JWT)
