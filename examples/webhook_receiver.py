"""How a receiver of webhooks knows that a message is genuine: docs/service.md, "Webhooks"."""

import hashlib
import hmac
import time


def is_genuine(secret: str, headers: dict[str, str], body: bytes) -> bool:
    """Whether a message came from the service, in the last five minutes."""
    sent_at = headers["Ideal-Timestamp"]
    signed = sent_at.encode() + b"." + body
    expected = "v1=" + hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
    recent = sent_at.isdigit() and abs(time.time() - int(sent_at)) < 300
    return recent and hmac.compare_digest(expected, headers["Ideal-Signature"])
