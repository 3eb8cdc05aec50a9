"""The table: every row, in order of rank. Where spans overlap, the replacement names the earliest row."""

from __future__ import annotations

from memd.ledger.sanitiser import clouds, context, models, named, pem, services
from memd.ledger.sanitiser.custom import CUSTOM
from memd.ledger.sanitiser.shape import Shape

SHAPES: tuple[Shape, ...] = (
    *pem.SHAPES,
    *models.SHAPES,
    *clouds.SHAPES,
    *services.SHAPES,
    *context.SHAPES,
    *named.SHAPES,
)

TYPES: tuple[str, ...] = tuple(dict.fromkeys((*(shape.type for shape in SHAPES), CUSTOM)))
