import pytest

from harn_temporal.redaction import is_redacted, redact


@pytest.mark.parametrize(
    "name",
    [
        "authorization",
        "Proxy-Authorization",
        "cookie",
        "Set-Cookie",
        "x-api-key",
        "X-GitLab-Token",
        "x-client-secret",
        "monkey",
        "tokenizer",
        "x-idempotency-key",
        "key",
    ],
)
def test_a_name_with_a_secret_word_is_blanked(name):
    assert is_redacted(name) is True
    assert redact({name: "s3cret"}) == {name: "[redacted]"}


@pytest.mark.parametrize(
    "name",
    [
        "user-agent",
        "content-type",
        "Content-Length",
        "x-request-id",
        "x-token-request-id",
        "x-slack-request-timestamp",
        "x-key-timestamp",
        "x-correlation-id",
        "x-github-event",
        "X-GitHub-Delivery",
        "x-token-event",
        "x-secret-delivery",
        "x-github-hook-id",
        "x-hub-signature-256",
        "linear-signature",
        "stripe-signature",
        "idempotency-key",
        "Idempotency-Key",
        "tenant",
        "pr_id",
    ],
)
def test_a_safe_name_is_kept(name):
    assert is_redacted(name) is False
    assert redact({name: "value"}) == {name: "value"}


def test_names_keep_their_case_and_the_input_stays_as_it_is():
    given = {"Authorization": "Bearer x", "Tenant": "acme"}
    assert redact(given) == {"Authorization": "[redacted]", "Tenant": "acme"}
    assert given["Authorization"] == "Bearer x"
