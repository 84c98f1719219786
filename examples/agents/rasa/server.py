"""An assistant behind Rasa's REST channel and HTTP API. A stand-in: Rasa needs a trained model.

    python3 server.py
    karat run

A tool is a custom action, and its arguments are slots. Only the tracker reports them, and it does not report results.
"""

from __future__ import annotations

import itertools
import re

from shop import CANNOT_DELETE, Call, ModelError, Reply, Request, answer, json_reply, serve

VERSION = "3.6.20"
clock = itertools.count(1767225600)
trackers: dict[str, list[dict]] = {}  # the events of a conversation by its sender


def event(kind: str, **values: object) -> dict:
    return {"event": kind, "timestamp": next(clock), **values}


def action(name: str, kind: str = "action") -> dict:
    return event(kind, name=name, policy="policy_0_RulePolicy", confidence=1, action_text=None)


def tracker_of(sender: str) -> list[dict]:
    start = [action("action_session_start"), event("session_started"), action("action_listen")]
    return trackers.setdefault(sender, start)


def call_events(call: Call) -> list[dict]:
    """Fill the slots that a call needs, then run its action. An action that fails is rejected."""
    slots = [event("slot", name=name, value=value) for name, value in call.arguments.items()]
    return [*slots, action(f"action_{call.name}", "action_execution_rejected" if call.error else "action")]


def webhook(request: Request) -> Reply:
    message, sender = request.body.get("message"), request.body.get("sender", "default")
    if not isinstance(message, str):
        reason = {"status": "failure", "reason": "BadRequest", "code": 400}
        return json_reply({"version": VERSION, "message": "Invalid message request", **reason}, 400)
    tracker = tracker_of(sender)
    earlier = [told["text"] for told in tracker if told["event"] == "user"]
    tracker.append(event("user", text=message, parse_data={"intent": {"name": "ask"}}, input_channel="rest"))
    text = ""
    try:
        turn = answer([*earlier, message])
        text = CANNOT_DELETE if turn.approval else turn.text
        for call in turn.calls:
            tracker += call_events(call)
    except ModelError:
        pass  # the user gets no answer; only the server's log has the error
    messages = re.findall(r"[^.!?\s][^.!?]*[.!?]?", text)  # a message for each sentence
    for sentence in messages:
        tracker += [action("utter_answer"), event("bot", text=sentence, data={}, metadata={})]
    tracker.append(action("action_listen"))
    return json_reply([{"recipient_id": sender, "text": sentence} for sentence in messages])


def conversation(request: Request) -> Reply:
    sender = request.parameters["sender"]
    tracker = tracker_of(sender)
    slots = {told["name"]: told["value"] for told in tracker if told["event"] == "slot"}
    return json_reply({"sender_id": sender, "slots": slots, "events": tracker, "paused": False})


def version(request: Request) -> Reply:
    return json_reply({"version": VERSION, "minimum_compatible_version": "3.5.0"})


serve(
    5005,
    {
        "GET /": lambda request: Reply([f"Hello from Rasa: {VERSION}"], "text/plain"),
        "GET /version": version,
        "GET /conversations/{sender}/tracker": conversation,
        "POST /webhooks/rest/webhook": webhook,
    },
)
