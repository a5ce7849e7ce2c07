"""A small client for Roost, written from docs/protocol.md and /openapi.json alone.

Four parts, each usable without the next:

- `HTTPClient` calls operations over HTTP, as the OpenAPI document describes them, and checks each answer against its schema.
- `Connection` is one WebSocket: it authenticates, pairs calls with replies and hands out events. It keeps nothing.
- `Replica` is a client's state: rows and positions. It does no input or output.
- `Client` joins the two: it resumes after each welcome and after a gap, so its replica always matches the server.
"""

import asyncio
import copy
import json
import urllib.parse
from dataclasses import dataclass, field

import httpx
import websockets
from jsonschema import Draft202012Validator
from openapi_schema_validator import OAS31Validator


class Refusal(Exception):
    """An operation was refused, over whichever transport."""

    def __init__(self, error, status=None):
        self.code = error["code"]
        self.message = error.get("message") or error.get("detail")
        self.field = error.get("field")
        self.limit = error.get("limit")
        self.rule = error.get("rule")
        self.status = status
        super().__init__(f"{self.code}: {self.message}")


class Closed(Exception):
    """The socket ended: with this close code, and after this error frame if there was one."""

    def __init__(self, code, error=None):
        self.code = code
        self.error = error
        super().__init__(f"closed with {code}" + (f" after {error['code']}" if error else ""))


# MARK: HTTP


class HTTPClient:
    def __init__(self, url, description, token=None):
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        # No proxy from the environment: all traffic goes to the given address.
        self.http = httpx.AsyncClient(base_url=url, headers=headers, trust_env=False, timeout=20)
        self.operations = {
            operation["operationId"]: (method.upper(), path, operation)
            for path, methods in description["paths"].items()
            for method, operation in methods.items()
        }
        self.components = copy.deepcopy(description["components"])
        # The schemas of answers are open, so fields can be added. This client reports any that isn't described.
        for schema in self.components["schemas"].values():
            if "properties" in schema:
                schema["additionalProperties"] = False

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        await self.http.aclose()

    async def call(self, name, headers={}, **fields):
        """Calls an operation by its operationId. Returns the response; raises `Refusal`."""
        method, path, operation = self.operations[name]
        query = []
        parameters = self.parameters(operation)
        described = {parameter["name"] for parameter in parameters if parameter["in"] == "header"}
        assert described.issuperset(headers), f"{name} doesn't describe {sorted(headers)}"
        for parameter in parameters:
            key = parameter["name"]
            if key not in fields:
                continue
            value = fields.pop(key)
            if parameter["in"] == "path":
                path = path.replace("{" + key + "}", urllib.parse.quote(text(value), safe=""))
            else:
                query += [(key, text(item)) for item in (value if isinstance(value, list) else [value])]
        content = json.dumps(fields).encode() if "requestBody" in operation else None
        assert content is not None or not fields, f"{name} doesn't describe {sorted(fields)}"
        url = path + ("?" + urllib.parse.urlencode(query, quote_via=urllib.parse.quote) if query else "")
        answer = await self.http.request(method, url, content=content, headers=headers)
        if answer.status_code == 204:
            # An earlier call with the same key did it.
            assert "204" in operation["responses"] and not answer.content, f"{name} answers 204"
            return DONE
        if answer.status_code != 200:
            raise Refusal(self.problem(answer), answer.status_code)
        assert answer.headers["content-type"] == "application/json", answer.headers
        result = answer.json()
        self.validate(result, operation["responses"]["200"]["content"]["application/json"]["schema"])
        return result

    def parameters(self, operation):
        """The parameters of an operation, shared ones too."""
        shared = self.components["parameters"]
        return [shared[one["$ref"].rpartition("/")[2]] if "$ref" in one else one for one in operation.get("parameters", [])]

    def problem(self, answer):
        """The checked body of a refusal: RFC 9457 with Roost's code."""
        media_type = answer.headers.get("content-type")
        assert media_type == "application/problem+json", f"status {answer.status_code} comes as {media_type}: {answer.text[:200]}"
        document = answer.json()
        self.validate(document, {"$ref": "#/components/schemas/Problem"})
        assert document["status"] == answer.status_code, document
        assert document["type"] == f"urn:roost:error:{document['code']}", document
        return document

    def validate(self, instance, schema):
        OAS31Validator({**schema, "components": self.components}).validate(instance)


# The answer to a call that an earlier call with the same key has carried out.
DONE = {"done": True}


def text(value):
    """A value in the form of a path or a query."""
    return json.dumps(value) if isinstance(value, bool) else str(value)


# MARK: One socket


class FrameCheck:
    """Checks every frame of a socket against /asyncapi.json. A frame with an undescribed member is an error too."""

    def __init__(self, description):
        self.components = copy.deepcopy(description["components"])
        for schema in self.components["schemas"].values():
            if "properties" in schema:
                schema["additionalProperties"] = False
        self.validators = {}

    def validate(self, name, instance):
        if name not in self.validators:
            schema = {"$ref": f"#/components/schemas/{name}", "components": self.components}
            self.validators[name] = Draft202012Validator(schema)
        self.validators[name].validate(instance)

    def received(self, frame):
        kind = next((kind for kind in ("event", "message", "reply", "signal", "welcome", "closing", "unwatched", "readingEnded", "error") if kind in frame), None)
        assert kind, f"a frame of no kind that is described: {frame}"
        self.validate(f"Frame.{kind}", frame)

    def answered(self, call, result):
        """A call that was carried out was valid, and its result matches its operation."""
        self.validate("Frame.call", call)
        self.validate(f"Result.{call['operation']}", result)


class Connection:
    """One authenticated WebSocket. Events and the end of the connection are passed to the two callables."""

    # The checker of all connections' frames, if set.
    frames = None
    # Differences between frames and the description.
    undescribed = []

    def __init__(self, socket, on_event, on_close):
        self.socket = socket
        self.on_event = on_event
        self.on_close = on_close
        self.welcome = None
        self.closing = None
        self.errors = []
        # Signals, in order of arrival.
        self.signals = asyncio.Queue()
        self.pending = {}
        self.calls = {}
        self.last_call = 0
        self.reader = None

    @classmethod
    async def open(cls, url, token, *, in_header=False, on_event=lambda event: None, on_close=lambda closed: None):
        """Connects and authenticates. Raises `Closed` if the token is refused."""
        socket = await open_socket(url, headers={"Authorization": f"Bearer {token}"} if in_header else {})
        connection = cls(socket, on_event, on_close)
        if not in_header:
            await connection.send({"authenticate": {"token": token, "client": "interop/1.0", "device": {"deviceId": "interop", "platform": "Python"}}})
        while connection.welcome is None:
            try:
                connection.receive(json.loads(await socket.recv()))
            except websockets.ConnectionClosed:
                raise connection.closed() from None
        connection.reader = asyncio.create_task(connection.read())
        return connection

    async def send(self, frame):
        await self.socket.send(json.dumps(frame, ensure_ascii=False))

    async def post(self, operation, *, key=None, **fields):
        """Sends a call without waiting, with a key if it has one; returns the future of its reply."""
        self.last_call += 1
        reply = asyncio.get_running_loop().create_future()
        self.pending[self.last_call] = reply
        call = {"call": self.last_call, "operation": operation, "with": fields}
        if key is not None:
            call["key"] = key
        self.calls[self.last_call] = call
        try:
            await self.send(call)
        except websockets.ConnectionClosed:
            raise self.closed() from None
        return reply

    async def call(self, operation, *, key=None, **fields):
        return await (await self.post(operation, key=key, **fields))

    async def read(self):
        try:
            async for text in self.socket:
                self.receive(json.loads(text))
        except websockets.ConnectionClosed:
            pass
        closed = self.closed()
        for reply in self.pending.values():
            if not reply.done():
                reply.set_exception(closed)
                reply.exception()
        self.pending = {}
        self.on_close(closed)

    def receive(self, frame):
        try:
            if self.frames:
                self.frames.received(frame)
                if "result" in frame and (call := self.calls.pop(frame["reply"], None)):
                    self.frames.answered(call, frame["result"])
        except Exception as error:
            # Reported by the next case that ends.
            Connection.undescribed.append(f"{type(error).__name__}: {str(error)[:400]} in {str(frame)[:300]}")
        if "event" in frame or "message" in frame:
            self.on_event(whole(frame))
        elif "reply" in frame:
            reply = self.pending.pop(frame["reply"])
            if reply.done():
                return
            if "error" in frame:
                reply.set_exception(Refusal(frame["error"]))
            else:
                reply.set_result(frame["result"] if "result" in frame else {"done": frame["done"]})
        elif "signal" in frame:
            self.signals.put_nowait(frame)
        elif "welcome" in frame:
            self.welcome = frame["welcome"]
        elif "closing" in frame:
            self.closing = frame["closing"]
        elif "error" in frame:
            self.errors.append(frame["error"])

    def closed(self):
        return Closed(self.socket.close_code, self.errors[-1] if self.errors else None)

    def drop(self):
        """Loses the connection as a network does: without a close frame."""
        self.socket.transport.abort()

    async def close(self):
        await self.socket.close()
        await self.ended()

    async def ended(self):
        if self.reader:
            await self.reader


async def open_socket(url, headers={}, path="/v1/socket"):
    """A WebSocket that isn't authenticated yet."""
    url = url.replace("http://", "ws://", 1).replace("https://", "wss://", 1) + path
    return await websockets.connect(
        url, additional_headers=headers, max_size=None, compression=None, ping_interval=None, proxy=None
    )


# MARK: A client's state


def counts(message):
    """Whether a message counts as unread for users other than its sender: 1 or 0."""
    return int(not message.get("isSilent") and message.get("kind") != "system")



@dataclass
class ChannelState:
    """A joined channel: its position, and its rows."""

    position: int
    row: dict
    membership: dict | None = None
    messages: dict = field(default_factory=dict)
    members: dict = field(default_factory=dict)
    # Mentions of the whole channel by the seqs of their messages.
    mentions: dict = field(default_factory=dict)
    capabilities: list = field(default_factory=list)

    def take(self, rows):
        for row in (rows.get("channel"), rows.get("counters")):
            if row and row["seq"] >= self.row["seq"]:
                self.row.update(row)
        for message in rows.get("messages") or []:
            newer(self.messages, message["messageId"], message)
        for member in rows.get("members") or []:
            newer(self.members, member["userId"], member)
        for mention in rows.get("channelMentions") or []:
            newer(self.mentions, mention["seq"], mention)
        by_role = rows.get("capabilities")
        if by_role:
            role = self.membership["role"] if self.membership else "member"
            self.capabilities = by_role[role] if role in by_role else by_role.get("member", [])

    def add(self, message):
        """Updates the counters for a new message that was sent alone, unless they are later already."""
        if self.row["seq"] < message["seq"]:
            time = message["createdAt"]
            self.row.update(seq=message["seq"], lastActivity=time, lastMessageAt=time)
            self.row["messageCount"] += 1
            self.row["ordinal"] += counts(message)

    def count_own(self, message):
        """The user's own message is never unread. A membership later than the message has already counted it."""
        if message["seq"] > self.membership["channelSeq"]:
            count = self.membership["readCount"] + counts(message)
            self.membership = {**self.membership, "readCount": count, "channelSeq": message["seq"]}

    def take_membership(self, membership, user):
        """Takes a membership, and counts the user's own messages that were applied since it was sent."""
        self.membership = membership
        own = [message for message in self.messages.values() if message["sender"] == user and message["seq"] <= self.position]
        for message in sorted(own, key=lambda message: message["seq"]):
            self.count_own(message)

    @property
    def unread(self):
        if not self.membership or self.membership["state"] != "member":
            return 0
        return max(0, self.row["ordinal"] - self.membership["readCount"])


def whole(event):
    """An event with all its members, whatever its form: for a new message sent alone they follow from the message."""
    if "message" not in event:
        return event
    message = event["message"]
    told = {"event": "message.new", "stream": "channel:" + message["channelId"], "seq": message["seq"], "actor": message["sender"]}
    return {**event, **told, "rows": {"messages": [message]}}


def changed_at(row):
    """The seq of a row's last change: an unchanged message leaves it out."""
    return row["changeSeq"] if "changeSeq" in row else row["seq"]


def newer(rows, key, row):
    if key not in rows or changed_at(row) >= changed_at(rows[key]):
        rows[key] = row


class Replica:
    """Rows and positions of one user, and the rules by which events and resumes change them."""

    def __init__(self, user):
        self.user = user
        self.epoch = None
        self.forget()

    def forget(self):
        self.position = 0
        self.profile = None
        self.channels = {}
        # Messages that the user has deleted for themselves: the channel and the seq of each.
        self.own_deletions = set()

    def receive(self, event):
        """Applies an event. Returns False if it shows a gap, without applying anything."""
        kind, _, name = event["stream"].partition(":")
        rows = event["rows"]
        if kind == "user":
            if event["seq"] <= self.position or event.get("after", event["seq"] - 1) > self.position:
                return event["seq"] <= self.position
            self.position = event["seq"]
            self.take_own(rows)
            return True
        state = self.channels.get(name)
        if state is None:
            return True
        before = state.position
        if event["seq"] <= before or event.get("after", event["seq"] - 1) > before:
            return event["seq"] <= before
        state.position = event["seq"]
        state.take(rows)
        if "message" in event:
            state.add(event["message"])
        for message in rows.get("messages") or []:
            if message["seq"] > before and message["sender"] == self.user and state.membership:
                state.count_own(message)
        if state.row["deletedAt"] is not None:
            del self.channels[name]
        return True

    def take_own(self, rows):
        """Rows of the user's stream."""
        for profile in rows.get("users") or []:
            self.profile = profile
        channel = rows.get("channel")
        for membership in rows.get("memberships") or []:
            name = membership["channelId"]
            held = self.channels.get(name)
            begins = held is None or held.position < membership["joinedSeq"]
            if membership["state"] == "member" and channel and channel["channelId"] == name and begins:
                self.channels[name] = ChannelState(position=channel["seq"], row=dict(channel))
                for mention in rows.get("channelMentions") or []:
                    newer(self.channels[name].mentions, mention["seq"], mention)
            self.take_membership(name, membership)
        self.take_own_state(rows)

    def take_own_state(self, rows):
        """Applies the rows of any stream that concern only the user."""
        for deletion in rows.get("ownDeletions") or []:
            self.own_deletions.add((deletion["channelId"], deletion["seq"]))
        for name, capabilities in (rows.get("ownCapabilities") or {}).items():
            if name in self.channels:
                self.channels[name].capabilities = capabilities

    def take_membership(self, name, membership):
        if membership["state"] != "member":
            self.channels.pop(name, None)
        elif name in self.channels:
            self.channels[name].take_membership(membership, self.user)

    def positions(self):
        """The fields of the resume that brings this replica up to date."""
        return {"after": self.position, "channels": {name: state.position for name, state in self.channels.items()}}

    def take_resumption(self, answer):
        self.take_own(answer["user"]["rows"])
        self.position = answer["user"]["seq"]
        for changes in answer["channels"]:
            name = changes["stream"].partition(":")[2]
            rows = changes["rows"]
            if changes.get("isFresh"):
                self.channels[name] = ChannelState(position=changes["seq"], row=dict(rows["channel"]))
            state = self.channels.get(name)
            if state is None:
                continue
            state.take(rows)
            self.take_own_state(rows)
            state.position = changes["seq"]
            for membership in rows.get("memberships") or []:
                self.take_membership(name, membership)

    def unread(self, channel):
        return self.channels[channel].unread

    def has_mention(self, channel):
        """Whether an unread message mentions the user."""
        state = self.channels[channel]
        if "history.read" not in state.capabilities:
            return False
        membership = state.membership
        if (membership.get("mentionSeq") or 0) > membership["readSeq"]:
            return True
        return any(
            (mention.get("mentionSeq") or 0) > membership["readSeq"] and mention["seq"] > membership["historyFloor"]
            and (channel, mention["seq"]) not in self.own_deletions and mention["sender"] != self.user
            for mention in state.mentions.values())

    def total_unread(self):
        counts = [state.unread for state in self.channels.values()]
        return {"unreadCount": sum(counts), "unreadChannelCount": sum(count > 0 for count in counts)}


# MARK: All of it


class Client:
    """A connected user. `connect` can be called again after the connection is lost."""

    def __init__(self, url, user, token):
        self.url = url
        self.token = token
        self.replica = Replica(user)
        self.connection = None
        self.closed = None
        # Every received event, in order, applied or not.
        self.events = []
        # The answers of the resumes since the last welcome.
        self.resumptions = []
        self.held = None
        self.catching_up = None
        self.changed = asyncio.Event()
        # For tests: this many of the next events are discarded, as if they had been lost.
        self.lose = 0

    async def __aenter__(self):
        await self.connect()
        return self

    async def __aexit__(self, *_):
        if self.catching_up:
            self.catching_up.cancel()
        if self.connection:
            await self.connection.close()

    async def connect(self):
        self.held = []
        self.closed = None
        self.resumptions = []
        self.connection = await Connection.open(self.url, self.token, on_event=self.receive, on_close=self.ended)
        epoch = self.connection.welcome["epoch"]
        if self.replica.epoch != epoch:
            self.replica.forget()
            self.replica.epoch = epoch
        await self.catch_up()

    async def catch_up(self):
        """Resumes until nothing is left, then applies the events that arrived meanwhile."""
        while self.held is not None:
            try:
                answer = await self.connection.call("stream.resume", **self.replica.positions())
            except Refusal as refusal:
                if refusal.code != "resync_required":
                    raise
                self.replica.forget()
                continue
            self.resumptions.append(answer)
            self.replica.take_resumption(answer)
            if answer["hasMore"]:
                continue
            held, self.held = self.held, None
            for index, event in enumerate(held):
                if not self.replica.receive(event):
                    self.held = held[index:]
                    break
        self.changed.set()

    def receive(self, event):
        if self.lose > 0:
            self.lose -= 1
            return
        self.events.append(event)
        if self.held is not None:
            self.held.append(event)
        elif not self.replica.receive(event):
            self.held = [event]
            self.catching_up = asyncio.create_task(self.catch_up())
        self.changed.set()

    def ended(self, closed):
        self.closed = closed
        self.changed.set()

    async def call(self, operation, **fields):
        return await self.connection.call(operation, **fields)

    async def post(self, operation, **fields):
        return await self.connection.post(operation, **fields)

    async def until(self, condition, what, deadline_seconds=20):
        """Waits until the condition holds, checking it after each frame."""
        try:
            async with asyncio.timeout(deadline_seconds):
                while self.held is not None or not condition():
                    self.changed.clear()
                    await self.changed.wait()
        except TimeoutError:
            raise AssertionError(f"{what} didn't come within {deadline_seconds} seconds") from None

    async def until_at(self, channel, seq):
        """Waits until the replica reaches a seq of a channel."""
        await self.until(
            lambda: channel in self.replica.channels and self.replica.channels[channel].position >= seq,
            f"seq {seq} of {channel} for {self.replica.user}",
        )

    def events_of(self, stream):
        return [event for event in self.events if event["stream"] == stream]
