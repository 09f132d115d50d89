"""Order files for the campaigns: mostly good, some declined, some broken."""

from __future__ import annotations

import json
import random

KINDS = ("good", "declined", "broken")
_PRICES = (("EUR", "19.99"), ("JPY", "500"), ("KWD", "1.005"), ("USD", "0.50"))


def order_body(dice: random.Random, order_id: str, kind: str | None = None) -> bytes:
    """An order file of that kind, or of one that the dice choose."""
    kind = kind or dice.choices(KINDS, (18, 1, 1))[0]
    if kind == "broken":
        return f"this is no order: {order_id}".encode()
    currency, amount = dice.choice(_PRICES)
    return json.dumps(
        {
            "order_id": order_id,
            "customer": "cus_42",
            "amount": amount,
            "currency": currency,
            "payment_method": "tok_declined" if kind == "declined" else "tok_visa",
        }
    ).encode()
