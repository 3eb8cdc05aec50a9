"""Keys of clouds, hosts and of what runs there, by the form each vendor gives its own.

source  the vendors' pages on their key formats, read 2026-11
"""

from __future__ import annotations

from memd.ledger.sanitiser.shape import Shape, grown, token
from memd.ledger.sanitiser.words import is_wordy


def _is_twenty(matched: str) -> bool:
    """An AWS id is exactly this long: without that, upper-case prose and base64 would be marked."""
    return len(matched) == 20


def _is_no_word(matched: str) -> bool:
    return not is_wordy(matched)


def _is_no_division(matched: str) -> bool:
    """`1//` is a division too."""
    return not is_wordy(matched[3:])


def _is_alibaba_id(matched: str) -> bool:
    return 16 <= len(matched) <= 28


AWS: tuple[Shape, ...] = (
    token(
        "aws_access_key_id",
        r"A(?:KIA|SIA|BIA|CCA)[A-Z0-9]{16,}",
        ("AKIA", "ASIA", "ABIA", "ACCA"),
        "AK" + "IA{upper:16}",
        family="long",
        is_whole=True,
        accept=_is_twenty,
    ),
    token(
        "aws_session_token",
        r"(?:IQoJb3JpZ2lu|FwoGZXIvYXdz|FQoGZXIvYXdz)[A-Za-z0-9/+=%_-]{40,}",
        ("IQoJb3JpZ2lu", "FwoGZXIvYXdz", "FQoGZXIvYXdz"),
        "IQoJb3JpZ2lu{b64:240}==",
        is_bound=False,
        family="base64",
    ),
    token(
        "aws_signature",
        r"X-Amz-(?:Signature|Security-Token)=(?P<s>[A-Za-z0-9/+=%_-]{20,})",
        ("X-Amz-",),
        "https://bucket.s3.amazonaws.com/key?X-Amz-Signature={hex:64}",
        is_bound=False,
    ),
    token("bedrock_key", r"ABSK[A-Za-z0-9+/]{60,}={0,2}", ("ABSK",), "ABSK{b64:128}", family="base64"),
)

AZURE: tuple[Shape, ...] = (
    token(
        "azure_storage_key",
        r"AccountKey=(?P<s>[A-Za-z0-9+/%]{32,}={0,2})",
        ("AccountKey=",),
        "DefaultEndpointsProtocol=https;AccountName=stuff;AccountKey={b64:86}==;EndpointSuffix=core.windows.net",
        is_bound=False,
    ),
    token(
        "azure_shared_access_key",
        r"SharedAccessKey=(?P<s>[A-Za-z0-9+/%]{32,}={0,2})",
        ("SharedAccessKey=",),
        "Endpoint=sb://bus.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey={b64:43}=",
        is_bound=False,
    ),
    token(
        "azure_sas",
        r"sig=(?P<s>[A-Za-z0-9%/+_-]{24,}={0,2})",
        ("sig=",),
        "https://stuff.blob.core.windows.net/c/b?sv=2024-11-04&sp=r&sig={b64:43}%3D",
        accept=_is_no_word,
    ),
    grown(
        "azure_client_secret",
        r"[0-9]Q~[A-Za-z0-9_~.-]{31,}",
        ("~",),
        "{alnum:3}8Q~{alnum:34}",
        before=r"A-Za-z0-9_~.-",
        least=3,
        most=3,
    ),
    grown(
        "azure_ai_key",
        r"JQQJ99[A-Za-z0-9]{16,}",
        ("JQQJ99",),
        "{alnum:52}JQQJ99{alnum:26}",
        before="A-Za-z0-9",
        least=32,
        most=60,
        family="long",
    ),
    grown(
        "azure_devops_pat",
        r"AZDO[A-Za-z0-9]{4}",
        ("AZDO",),
        "{alnum:76}AZDO{alnum:4}",
        before="A-Za-z0-9",
        least=40,
        most=90,
        family="long",
    ),
)

GOOGLE: tuple[Shape, ...] = (
    token(
        "google_api_key",
        r"AIza[A-Za-z0-9_-]{30,}",
        ("AIza",),
        "AI" + "za{word:35}",
        is_bound=False,
        family="run",
    ),
    token(
        "google_oauth_secret", r"GOCSPX-[A-Za-z0-9_-]{20,}", ("GOCSPX-",), "GOCSPX-{word:28}", is_bound=False
    ),
    token("google_oauth_token", r"ya29\.[A-Za-z0-9_.-]{20,}", ("ya29.",), "ya29.{word:160}"),
    token(
        "google_refresh_token", r"1//[A-Za-z0-9_-]{20,}", ("1//",), "1//0{word:60}", accept=_is_no_division
    ),
    token("google_auth_key", r"AQ\.Ab[A-Za-z0-9_-]{20,}", ("AQ.Ab",), "AQ.Ab8RN6{word:44}", family="dot"),
)

HOSTS: tuple[Shape, ...] = (
    token(
        "alibaba_key_id",
        r"LTAI[A-Za-z0-9]{16,}",
        ("LTAI",),
        "LTAI{alnum:20}",
        family="long",
        accept=_is_alibaba_id,
    ),
    token("tencent_key_id", r"AKID[A-Za-z0-9]{28,}", ("AKID",), "AKID{alnum:32}", family="long"),
    token("digitalocean_token", r"do[opr]_v1_[0-9a-f]{32,}", ("_v1_",), "dop_v1_{hex:64}", family="tail"),
    token(
        "cloudflare_token",
        r"cf(?:ut|at|k)_[A-Za-z0-9]{20,}",
        ("cfut_", "cfat_", "cfk_"),
        "cfut_{alnum:40}",
        family="tail",
    ),
    token(
        "cloudflare_ca_key",
        r"v1\.0-[0-9a-f]{24}-[0-9a-f]{100,}",
        ("v1.0-",),
        "v1.0-{hex:24}-{hex:146}",
        family="tail",
    ),
    token(
        "fly_token",
        r"f(?:o1|m1r|m1a|m2)_[A-Za-z0-9+/=,_-]{20,}",
        ("fo1_", "fm1r_", "fm1a_", "fm2_"),
        "fm2_{b64:120}",
    ),
    token("heroku_key", r"HRKU-[A-Za-z0-9_-]{20,}", ("HRKU-",), "HRKU-{word:60}", family="run"),
    token("vercel_token", r"vc[apikr]_[A-Za-z0-9]{20,}", ("vc",), "vcp_{alnum:56}", family="tail"),
    token(
        "vercel_blob_token",
        r"vercel_blob_rw_[A-Za-z0-9_]{20,}",
        ("vercel_blob_rw_",),
        "vercel_blob_rw_{alnum:16}_{alnum:30}",
    ),
    token("netlify_token", r"nf[bcopu]_[A-Za-z0-9]{20,}", ("nf",), "nfp_{alnum:36}", family="tail"),
    token("supabase_token", r"sbp_[0-9a-f]{32,}", ("sbp_",), "sbp_{hex:40}", family="tail"),
    token("supabase_secret_key", r"sb_secret_[A-Za-z0-9_-]{20,}", ("sb_secret_",), "sb_secret_{word:31}"),
    token(
        "planetscale_token",
        r"pscale_(?:tkn|pw|oauth|api)_[A-Za-z0-9_.=-]{20,}",
        ("pscale_",),
        "pscale_tkn_{word:43}",
    ),
    token("neon_key", r"napi_[a-z0-9]{32,}", ("napi_",), "napi_{lower:64}", family="tail"),
    token(
        "render_key", r"rnd_[A-Za-z0-9]{20,}", ("rnd_",), "rnd_{alnum:28}", family="tail", accept=_is_no_word
    ),
    token("databricks_token", r"dapi[0-9a-f]{32}(?:-[0-9])?", ("dapi",), "dapi{hex:32}", family="long"),
    token(
        "vault_token", r"hv[sbr]\.[A-Za-z0-9_-]{20,}", ("hvs.", "hvb.", "hvr."), "hvs.{word:90}", family="dot"
    ),
    grown(
        "terraform_token",
        r"\.atlasv1\.[A-Za-z0-9_-]{40,}",
        (".atlasv1.",),
        "{alnum:14}.atlasv1.{word:67}",
        before="A-Za-z0-9",
        least=8,
        most=24,
        family="dot",
    ),
    token("pulumi_token", r"pul-[0-9a-f]{32,}", ("pul-",), "pul-{hex:40}", family="tail"),
    token(
        "doppler_token",
        r"dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9_.-]{20,}",
        ("dp.",),
        "dp.pt.{alnum:43}",
    ),
    token("onepassword_token", r"ops_eyJ[A-Za-z0-9_+/=-]{20,}", ("ops_eyJ",), "ops_eyJ{word:200}"),
    token(
        "age_key", r"AGE-SECRET-KEY-(?:PQ-)?1[A-Z0-9]{40,}", ("AGE-SECRET-KEY-",), "AGE-SECRET-KEY-1{bech:58}"
    ),
    token("openshift_token", r"sha256~[A-Za-z0-9_-]{40,}", ("sha256~",), "sha256~{word:43}"),
    token(
        "dynatrace_token",
        r"dt0(?:c01|s01|s02|s03|s04|s06|s08|s16)\.[A-Z0-9]{16,}\.[A-Z0-9]{32,}",
        tuple(f"dt0{kind}." for kind in ("c01", "s01", "s02", "s03", "s04", "s06", "s08", "s16")),
        "dt0c01.{upper:24}.{upper:64}",
        family="dot",
    ),
    token(
        "tailscale_key", r"tskey-[a-z]+-[A-Za-z0-9-]{16,}", ("tskey-",), "tskey-auth-{alnum:17}-{alnum:32}"
    ),
)

SHAPES: tuple[Shape, ...] = AWS + AZURE + GOOGLE + HOSTS
