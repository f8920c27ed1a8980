"""Handlers of the example. An event's payload is `event.raw`, as GitHub sent it."""

from harn_temporal import HandlerContext, TriggerEvent

ATTEMPTS_THAT_FAIL = 2

LABELS = {
    "bug": ("crash", "error", "traceback", "fails"),
    "docs": ("readme", "typo", "documentation"),
    "performance": ("slow", "timeout", "memory"),
}


def is_from_a_person(event: TriggerEvent) -> bool:
    """The `when` of a trigger: bots open issues too, and nobody needs to triage those."""
    return event.raw["sender"]["type"] == "User"


def on_new_issue(event: TriggerEvent) -> dict:
    """Proposes labels. The result is recorded, so it is small and says what was done."""
    issue = event.raw["issue"]
    text = f"{issue['title']}\n{issue['body'] or ''}".lower()
    present = {label["name"] for label in issue["labels"]}
    proposed = {label for label, words in LABELS.items() if any(word in text for word in words)}
    return {
        "repository": event.raw["repository"]["full_name"],
        "issue": issue["number"],
        "add_labels": sorted(proposed - present),
        "priority": "high" if "bug" in proposed and issue["milestone"] else "normal",
    }


async def notify_flaky(event: TriggerEvent, context: HandlerContext) -> dict:
    """Stands for a chat service that is down for two attempts. Any exception means a retry."""
    context.log.info("telling the channel about issue %s", event.raw["issue"]["number"])
    if context.attempt <= ATTEMPTS_THAT_FAIL:
        raise ConnectionError(
            f"the chat service did not answer (attempt {context.attempt} of {context.max_attempts})"
        )
    return {"channel": "#lighthouse", "issue": event.raw["issue"]["html_url"]}
