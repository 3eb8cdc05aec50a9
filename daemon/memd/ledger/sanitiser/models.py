"""Keys of model providers and of the services agents are built with, by the form each vendor gives its own.

source  the vendors' pages on their key formats, read 2026-11
"""

from __future__ import annotations

from memd.ledger.sanitiser.shape import Shape, token
from memd.ledger.sanitiser.words import is_wordy


def _is_no_class_name(matched: str) -> bool:
    """`sk-` also begins names in style sheets (`sk-fading-circle-container`) and of key types of SSH."""
    return not is_wordy(matched[3:]) and not matched.startswith(("sk-ssh-", "sk-ecdsa-"))


def _is_no_word(matched: str) -> bool:
    return not is_wordy(matched)


SHAPES: tuple[Shape, ...] = (
    token(
        "anthropic_key",
        r"sk-ant-[A-Za-z0-9_-]{16,}",
        ("sk-ant-",),
        "sk-ant-api03-{word:93}AA",
        is_bound=False,
    ),
    token(
        "openrouter_key",
        r"sk-or-[A-Za-z0-9_-]{16,}",
        ("sk-or-",),
        "sk-or-v1-{hex:64}",
        accept=_is_no_class_name,
    ),
    token(
        "openai_key",
        r"sk-(?:proj|svcacct|admin|service|None)-[A-Za-z0-9_-]{16,}",
        ("sk-proj-", "sk-svcacct-", "sk-admin-", "sk-service-", "sk-None-"),
        "sk-proj-{word:74}T3Blbk" + "FJ{word:74}",
        accept=_is_no_class_name,
    ),
    # DeepSeek, Moonshot, proxies and the older keys of OpenAI share this bare form
    token("sk_key", r"sk-[A-Za-z0-9_-]{16,}", ("sk-",), "sk-{hex:32}", accept=_is_no_class_name),
    token("groq_key", r"gsk_[A-Za-z0-9]{20,}", ("gsk_",), "gsk_{alnum:52}", family="tail"),
    token("xai_key", r"xai-[A-Za-z0-9]{20,}", ("xai-",), "xai-{alnum:80}", family="tail"),
    token("perplexity_key", r"pplx-[A-Za-z0-9]{20,}", ("pplx-",), "pplx-{alnum:48}", family="tail"),
    token("huggingface_token", r"hf_[A-Za-z0-9]{20,}", ("hf_",), "hf_{alnum:34}", family="tail"),
    token(
        "huggingface_token", r"api_org_[A-Za-z0-9]{20,}", ("api_org_",), "api_org_{alnum:34}", family="tail"
    ),
    token("replicate_token", r"r8_[A-Za-z0-9]{20,}", ("r8_",), "r8_{alnum:37}", family="tail"),
    token(
        "fireworks_key", r"fw_[A-Za-z0-9]{20,}", ("fw_",), "fw_{alnum:24}", family="tail", accept=_is_no_word
    ),
    token("together_key", r"tgp_v1_[A-Za-z0-9_-]{20,}", ("tgp_v1_",), "tgp_v1_{word:43}"),
    token("cerebras_key", r"csk-[A-Za-z0-9]{20,}", ("csk-",), "csk-{lower:48}", family="tail"),
    token("nvidia_key", r"nvapi-[A-Za-z0-9_-]{20,}", ("nvapi-",), "nvapi-{word:64}"),
    token("elevenlabs_key", r"sk_[0-9a-f]{40,}", ("sk_",), "sk_{hex:48}", family="tail"),
    token(
        "langsmith_key",
        r"lsv2_(?:pt|sk)_[0-9a-f]{16,}(?:_[0-9a-f]{6,})?",
        ("lsv2_",),
        "lsv2_pt_{hex:32}_{hex:10}",
    ),
    token("pinecone_key", r"pcsk_[A-Za-z0-9_]{20,}", ("pcsk_",), "pcsk_{alnum:6}_{alnum:62}"),
    token("tavily_key", r"tvly-[A-Za-z0-9-]{20,}", ("tvly-",), "tvly-dev-{alnum:32}", accept=_is_no_word),
    token(
        "voyage_key",
        r"pa-[A-Za-z0-9_-]{40,}",
        ("pa-",),
        "pa-{word:43}",
        accept=_is_no_word,
        family="run",
    ),
    token("jina_key", r"jina_[A-Za-z0-9_-]{32,}", ("jina_",), "jina_{hex:32}{word:28}", accept=_is_no_word),
    token("e2b_key", r"e2b_[0-9a-f]{32,}", ("e2b_",), "e2b_{hex:40}", family="tail"),
    token("firecrawl_key", r"fc-[0-9a-f]{32,}", ("fc-",), "fc-{hex:32}", family="tail"),
    token("cursor_key", r"crsr_[0-9a-f]{32,}", ("crsr_",), "crsr_{hex:64}", family="tail"),
    token(
        "modal_token",
        r"a[ks]-[A-Za-z0-9]{22,}",
        ("ak-", "as-"),
        "ak-{alnum:22}",
        family="tail",
        accept=_is_no_word,
    ),
)
