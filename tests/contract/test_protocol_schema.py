"""The protocol's JSON schema is a contract: a change of this file is a decision about `v`."""

from __future__ import annotations

from pathlib import Path

import msgspec

from memd import protocol

GOLDEN = Path(__file__).with_name("protocol.v1.json")


def schema() -> bytes:
    requests, replies = protocol.AnyRequest, protocol.AnyReply
    both, parts = msgspec.json.schema_components([requests, replies])
    document = {"request": both[0], "reply": both[1], "$defs": parts}
    return msgspec.json.format(msgspec.json.encode(document, order="sorted"), indent=1) + b"\n"


def test_the_protocol_is_the_one_on_record() -> None:
    assert schema() == GOLDEN.read_bytes()


def test_every_request_and_reply_survives_the_wire() -> None:
    odd = b"/home/\xff\xfe/a b"
    entry = protocol.Entry(agent=odd, config_home=odd, path=odd, outcome="linked")
    for reply in (
        protocol.Healed(entries=(entry,)),
        protocol.Failure(code="x", message="m", remedy="r", exit_status=70, path=odd),
        protocol.WhereReply(root=odd, key="-k", owned=b"", entries=()),
    ):
        assert protocol.decode_reply(protocol.encode(reply)) == reply
    for request in (protocol.Ping(), protocol.Heal(cwd=odd, dry_run=True), protocol.Where(path=odd)):
        assert protocol.decode_request(protocol.encode(request)) == request
