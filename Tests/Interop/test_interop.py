"""Proves that docs/protocol.md and /openapi.json are enough to write a client: this one shares no code with Roost.

    ROOST_URL=http://127.0.0.1:8080 ROOST_BINARY=.build/debug/roost ROOST_DATA=roost-data python3 test_interop.py

A server must run at ROOST_URL with the data directory ROOST_DATA. Each case makes its own users and channels, so it can run
again on the same server. The last line is `N passed, M failed`; the exit code is 1 if one failed. Names given as arguments choose
the cases whose title contains one of them.
"""

import asyncio
import base64
import contextlib
import datetime
import json
import os
import pathlib
import re
import sys
import traceback
import urllib.parse
import uuid

import httpx
import websockets
from openapi_spec_validator import validate as validate_openapi

from jsonschema import Draft202012Validator

from roost_client import DONE, Client, Closed, Connection, FrameCheck, HTTPClient, Refusal, Replica, open_socket

URL = os.environ["ROOST_URL"].rstrip("/")
BINARY = os.environ["ROOST_BINARY"]
DATA = os.environ["ROOST_DATA"]
PROTOCOL = pathlib.Path(__file__).parents[2] / "docs" / "protocol.md"
RUN = uuid.uuid4().hex[:8]
CASES = []


def case(title):
    def add(function):
        CASES.append((title, function))
        return function

    return add


def equal(actual, expected, what):
    if actual == expected:
        return
    # In long lists only the first difference is informative.
    if isinstance(actual, list) and isinstance(expected, list) and len(actual) == len(expected):
        index = next(index for index in range(len(actual)) if actual[index] != expected[index])
        actual, expected, what = actual[index], expected[index], f"{what}, at index {index}"
    raise AssertionError(f"{what}: {shown(actual)}, expected {shown(expected)}")


def shown(value, characters=600):
    text = repr(value)
    return text if len(text) <= characters else f"{text[:characters]}… ({len(text)} characters)"


async def refused(awaitable, code, *, field=None, status=None):
    try:
        result = await awaitable
    except Refusal as refusal:
        equal((refusal.code, refusal.field), (code, field), "refusal")
        if status is not None:
            equal(refusal.status, status, "status")
        return refusal
    raise AssertionError(f"this was expected to be refused with {code}: {result}")


class World:
    """The environment of one case. Everything opened in it is closed at its end."""

    def __init__(self, description, stack):
        self.description = description
        self.stack = stack
        self.name = uuid.uuid4().hex[:8]

    def user(self, name):
        return f"{name}-{self.name}"

    def channel(self, name="room"):
        return f"{name}-{self.name}"

    async def token(self, name, *options):
        return await make_token(self.user(name), *options)

    async def http(self, name, *options):
        client = HTTPClient(URL, self.description, await self.token(name, *options))
        return await self.stack.enter_async_context(client)

    async def client(self, name, *options):
        client = Client(URL, self.user(name), await self.token(name, *options))
        return await self.stack.enter_async_context(client)

    async def room(self, *members, name="room"):
        """A channel that the first user made and the others joined, and everyone's client."""
        clients = [await self.client(member) for member in members]
        channel = self.channel(name)
        await clients[0].call("channel.create", channel=channel, type="community")
        for client in clients[1:]:
            await client.call("member.join", channel=channel)
        for client in clients:
            await client.until_at(channel, len(members))
        return channel, clients


async def make_token(user, *options):
    process = await asyncio.create_subprocess_exec(
        BINARY, "token", user, "--data", DATA, *options, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    output, errors = await asyncio.wait_for(process.communicate(), 20)
    equal(process.returncode, 0, f"exit code of `roost token` ({errors.decode()})")
    lines = output.decode().split()
    equal(len(lines), 1, "words that `roost token` prints")
    return lines[0]


async def close_code(socket):
    """Reads to the end of a socket: its close code, and the error frames before."""
    errors = []
    try:
        async with asyncio.timeout(20):
            while True:
                frame = json.loads(await socket.recv())
                if "error" in frame:
                    errors.append(frame["error"]["code"])
    except websockets.ConnectionClosed:
        return socket.close_code, errors


def sending(text, **fields):
    return {"clientId": uuid.uuid4().hex, "text": text, **fields}


def state(replica, channel):
    """A replica's state of a channel: to compare one that caught up with a fresh one."""
    known = replica.channels[channel]
    return {
        "position": known.position, "channel": known.row, "messages": known.messages,
        # The position at which it was sent differs between replicas in the same state.
        "membership": {**known.membership, "channelSeq": None},
        "unread": known.unread,
    }


# MARK: The description


@case("openapi-spec-validator accepts /openapi.json")
async def openapi_is_valid(world):
    equal(world.description["openapi"][:3], "3.1", "version of OpenAPI")
    validate_openapi(world.description)


@case("every operationId is the name of the operation on the socket")
async def operation_names(world):
    ann = await world.client("ann")
    names = [operation["operationId"] for methods in world.description["paths"].values() for operation in methods.values()]
    equal(len(names), len(set(names)), "distinct operationIds")
    for name in names:
        # An unknown field is refused before anything is done, which shows that the name is known.
        refusal = await refused(ann.call(name, thisFieldDoesNotExist=1), "invalid_argument", field="thisFieldDoesNotExist")
        assert name in refusal.message, refusal.message
    await refused(ann.call("message.sent"), "unknown_operation", field="operation")


@case("the table of operations in docs/protocol.md is that of /openapi.json")
async def documented_operations(world):
    documented = {}
    for line in PROTOCOL.read_text().splitlines():
        row = re.match(r"\| `([a-z]+\.[A-Za-z]+)` \| ([A-Z]+) \| `(/v1/[^`]*)` \|([^|]*)\|", line)
        if row:
            name, method, path, fields = row.groups()
            documented[name] = (method, path, set(fields.replace(" ", "").split(",")) - {""})
    described = {}
    for path, methods in world.description["paths"].items():
        for method, operation in methods.items():
            own = [p for p in operation.get("parameters", []) if "$ref" not in p]
            fields = {p["name"] + ("" if p["required"] else "?") for p in own}
            if "requestBody" in operation:
                schema = operation["requestBody"]["content"]["application/json"]["schema"]
                required = schema.get("required", [])
                fields |= {name + ("" if name in required else "?") for name in schema["properties"]}
            described[operation["operationId"]] = (method.upper(), path, fields)
    for name in documented.keys() | described.keys():
        equal(documented.get(name), described.get(name), f"{name} in docs/protocol.md")


def section(title):
    """A part of docs/protocol.md, from its headline to the next of the same rank."""
    return re.split(r"^## ", PROTOCOL.read_text().split(f"\n## {title}\n", 1)[1], flags=re.M)[0]


@case("/asyncapi.json has each frame, event and close code of docs/protocol.md, and no others")
async def socket_is_described(world):
    description = world.socket_description
    equal(description["asyncapi"], "3.0.0", "version of AsyncAPI")
    schemas = description["components"]["schemas"]
    for schema in schemas.values():
        Draft202012Validator.check_schema(schema)
    frames = re.findall(r"^### (\w+) \((?:client|server)\)$", section("The socket"), re.M)
    equal(sorted(description["components"]["messages"]), sorted(frames), "frames")
    equal(sorted(description["channels"]["socket"]["messages"]), sorted(frames), "messages of the channel")
    told = section("Streams")
    rows = [line.split("|")[1] for line in told.splitlines() if line.startswith("| `")]
    events = {name for row in rows for name in re.findall(r"`([a-zA-Z]+(?:\.[a-zA-Z]+)?)`", row)} - {"seq", "after"}
    described = set(schemas["WatchedEvent"]["properties"]["event"]["enum"])
    equal(sorted(name for name in events if "." in name), sorted(described), "events")
    codes = {int(code) for code in re.findall(r"^\| (\d{4}) \|", section("Close codes"), re.M)}
    equal(sorted(code["code"] for code in description["x-close-codes"]), sorted(code for code in codes if code >= 1012), "close codes")
    for names in [description["components"]["messages"].values()]:
        for message in names:
            assert message["payload"]["$ref"].rpartition("/")[2] in schemas, message


@case("each example of an event and a signal in docs/protocol.md is a frame as /asyncapi.json has it, and a client takes it")
async def examples(world):
    check, kinds = FrameCheck(world.socket_description), set()
    for line in section("Examples").splitlines():
        if not line.startswith("{"):
            continue
        frame = json.loads(line)
        check.received(frame)
        kinds.add(frame.get("signal") or frame.get("event") or "message.new")
        if frame.get("stream", "").startswith("user:"):
            replica = Replica(frame["stream"].partition(":")[2])
            replica.position = frame["seq"] - 1
            assert replica.receive(frame) and replica.position == frame["seq"], line
    events = world.socket_description["components"]["schemas"]["WatchedEvent"]["properties"]["event"]["enum"]
    signals = {"typing.changed", "watching.changed", "read.updated", "presence.changed", "users.changed", "custom"}
    equal(sorted(kinds), sorted(set(events) | signals), "examples")


# MARK: Limits


def described_fields(operation):
    """Each field of an operation except headers: its place, name and schema."""
    for parameter in operation.get("parameters", []):
        if "$ref" not in parameter:
            yield parameter["in"], parameter["name"], parameter["schema"]
    if "requestBody" in operation:
        for name, schema in operation["requestBody"]["content"]["application/json"]["schema"]["properties"].items():
            yield "body", name, schema


def edges(schema, place):
    """Values on both sides of each limit of a schema: (value, whether it is valid)."""
    for part in schema.get("anyOf", []):
        if "minimum" in part:
            schema = {**schema, **part}
    text = lambda length: ("https://a.b/" + "a" * length)[:length] if "https" in schema.get("pattern", "") else "a" * length
    if "maxLength" in schema and schema.get("format") != "int64":
        yield text(schema["maxLength"]), True
        yield text(schema["maxLength"] + 1), False
    if schema.get("minLength") == 1 and place == "body":
        yield "", False
    if schema.get("maximum", 2**63 - 1) < 2**63 - 1:
        yield schema["maximum"], True
        yield schema["maximum"] + 1, False
    if schema.get("minimum", -(2**63)) > -(2**63):
        yield schema["minimum"], True
        yield schema["minimum"] - 1, False
    if "maxItems" in schema:
        some = lambda count: [element(schema["items"], at) for at in range(count)]
        yield some(schema["maxItems"]), True
        yield some(schema["maxItems"] + 1), False
        if schema.get("minItems") == 1 and place == "body":
            yield [], False
        if schema.get("uniqueItems"):
            yield some(1) * 2, False
    value = [] if (schema.get("additionalProperties") or {}).get("type") == "array" else 1
    if "maxProperties" in schema:
        yield {f"x{at}": value for at in range(schema["maxProperties"] + 1)}, False
    if "propertyNames" in schema:
        length = schema["propertyNames"]["maxLength"]
        yield {"a" * length: value}, True
        yield {"a" * (length + 1): value}, False


def element(schema, at):
    """An element of a list, a different one each time while there are any."""
    if "enum" in schema:
        return schema["enum"][at % len(schema["enum"])]
    if schema.get("type") == "object":
        return {name: element(schema["properties"][name], at) for name in schema["required"]}
    return str(at + 1) if schema.get("format") == "int64" else "x" + chr(97 + at // 26) + chr(97 + at % 26)


@case("each limit in /openapi.json is the one that is enforced: at it, and one over it; its examples are valid")
async def limits_are_enforced(world):
    token = await world.token("root", "--role", "admin")
    tried = 0
    async with httpx.AsyncClient(base_url=URL, headers={"Authorization": f"Bearer {token}"}, trust_env=False, timeout=20) as http:
        for path, methods in world.description["paths"].items():
            for method, operation in methods.items():
                name = operation["operationId"]
                examples = {p["name"]: p["example"] for p in operation["parameters"] if "example" in p}
                body = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
                for place, key, schema in described_fields(operation):
                    example = body.get("example", {}).get(key) if place == "body" else examples.get(key)
                    if example is not None:
                        Draft202012Validator(schema).validate(example)
                    for value, is_valid in edges(schema, place):
                        # A field that requires another one.
                        companion = {"around": 1} if name == "message.list" and key == "newerLimit" else {}
                        fields = {**examples, **body.get("example", {}), **companion, key: value}
                        address, query, content = path, [], {}
                        for where, other, _ in described_fields(operation):
                            if other not in fields:
                                continue
                            if where == "path":
                                address = address.replace("{" + other + "}", urllib.parse.quote(str(fields[other]), safe=""))
                            elif where == "query":
                                values = fields[other] if isinstance(fields[other], list) else [fields[other]]
                                query += [(other, str(item)) for item in values]
                            else:
                                content[other] = fields[other]
                        data = json.dumps(content).encode() if body else None
                        headers = {"Content-Type": "application/json"} if body else {}
                        answer = await http.request(method.upper(), address, params=query, content=data, headers=headers)
                        problem = answer.json() if answer.status_code != 200 else {}
                        refused_for_it = problem.get("field") == key and answer.status_code in (400, 413)
                        # A text of letters has a cursor's length, but isn't one.
                        if is_valid and key == "cursor":
                            refused_for_it = problem.get("code") == "limit_exceeded"
                        equal(refused_for_it, not is_valid, f"{name} with {key} {shown(value, 60)}: {shown(problem, 300)}")
                        tried += 1
    assert tried > 200, f"only {tried} values were tried"


@case("schemathesis finds nothing that /openapi.json doesn't describe")
async def schemathesis(world):
    root = await world.http("root", "--role", "admin")
    # The examples' users and channels are made, so not every request fails because something doesn't exist.
    for name in ("example", "x1"):
        await root.call("user.upsert", user=name)
    with contextlib.suppress(Refusal):
        await root.call("channel.create", channel="example", type="community", users=["x1"])
    process = await asyncio.create_subprocess_exec(
        pathlib.Path(sys.executable).with_name("schemathesis"), "--config-file", pathlib.Path(__file__).with_name("schemathesis.toml"),
        "run", f"{URL}/openapi.json", "--continue-on-failure", "-H", f"Authorization: {root.http.headers['Authorization']}",
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT, cwd=DATA + "/..")
    try:
        output, _ = await process.communicate()
    finally:
        # After a timeout nobody reads the answers.
        if process.returncode is None:
            process.kill()
    text = output.decode(errors="replace")
    found = text[text.find("= FAILURES") :] if "= FAILURES" in text else text
    found = "\n".join(line[:200] for line in found.splitlines() if line.strip())
    assert process.returncode == 0, f"exit code {process.returncode}\n{found[:1500]}\n…\n{found[-500:]}"


# MARK: Operations


async def life_of_a_channel(world, ann, bob, ann_id, bob_id):
    """Creates, joins, sends, lists, edits, deletes; the same over both transports."""
    room = world.channel()
    created = await ann("channel.create", channel=room, type="community", displayName="Room", tags=["a"], metadata={"k": [1, None]})
    channel = created["channel"]
    equal(
        [channel[key] for key in ("channelId", "displayName", "tags", "metadata", "createdBy", "seq", "memberCount")],
        [room, "Room", ["a"], {"k": [1, None]}, ann_id, 1, 1], "created channel")
    equal([created["membership"][key] for key in ("role", "state", "readCount")], ["owner", "member", 0], "membership of the creator")

    joined = await bob("member.join", channel=room)
    equal([joined["membership"]["role"], joined["channel"]["memberCount"]], ["member", 2], "joined")
    equal((await bob("member.join", channel=room))["membership"], joined["membership"], "joined again")
    page = await ann("member.list", channel=room, limit=1)
    rest = await ann("member.list", channel=room, limit=1, cursor=page["nextCursor"])
    equal([row["member"]["userId"] for row in page["items"] + rest["items"]], [ann_id, bob_id], "members, the first one first")
    assert "nextCursor" not in rest, rest

    text = "hello, żółw 🐢\n\"quoted\" \\ \u2028"
    first = await ann("message.send", channel=room, clientId="1", text=text, customType="note", data="d", tags=["x"], metadata={"n": 9007199254740993})
    equal(
        [first.get(key) for key in ("channelId", "seq", "changeSeq", "sender", "clientId", "text", "metadata")],
        [room, 3, None, ann_id, "1", text, {"n": 9007199254740993}], "sent message")
    second = await bob("message.send", channel=room, clientId="1", text="hi", parentId=first["messageId"])
    equal([second["seq"], second["parentId"]], [4, first["messageId"]], "answering message")
    assert int(second["messageId"]) > int(first["messageId"]), "ids grow"
    listed = await bob("message.list", channel=room)
    who = {user["userId"]: user for user in listed["users"]}
    equal(listed, {"messages": [first, second], "hasOlder": False, "hasNewer": False, "seq": 4, "users": [who[id] for id in sorted([ann_id, bob_id])]}, "history")
    profiles = await bob("user.getMany", users=[ann_id, bob_id], omitMetadata=True)
    equal([{key: row[key] for key in ("userId", "displayName", "avatarFileId", "version") if key in row} for row in profiles], listed["users"], "who sent it")
    before = {**listed, "messages": [first], "hasNewer": True, "users": [who[ann_id]]}
    equal(await bob("message.list", channel=room, before=4, limit=1), before, "history before")
    equal(await bob("message.list", channel=room, after=3), {**listed, "messages": [second], "hasOlder": True, "users": [who[bob_id]]}, "history after")
    equal((await bob("message.list", channel=room, around=3, limit=2))["messages"], [first, second], "history around")
    equal(await bob("message.list", channel=room, aroundMessage=first["messageId"], limit=1), before, "history around a message")
    equal(await bob("message.get", channel=room, message=second["messageId"]), second, "one message")
    await refused(bob("message.get", channel=room, message="1"), "not_found", field="message")
    await refused(bob("message.list", channel=room, aroundMessage="1"), "not_found", field="aroundMessage")

    edited = await ann("message.edit", channel=room, message=first["messageId"], text="hello")
    equal([edited["text"], edited["seq"], edited["changeSeq"], edited["customType"]], ["hello", 3, 5, "note"], "edited message")
    assert edited["editedAt"] >= first["createdAt"], edited
    equal(await ann("message.edit", channel=room, message=first["messageId"], text="hello"), edited, "edited again")
    await refused(bob("message.edit", channel=room, message=first["messageId"], text="mine"), "not_message_owner")
    deleted = await bob("message.delete", channel=room, message=second["messageId"])
    equal([deleted["text"], deleted["seq"], deleted["changeSeq"]], ["", 4, 6], "deleted message")
    equal(await bob("message.delete", channel=room, message=second["messageId"]), deleted, "deleted again")
    equal((await ann("message.list", channel=room))["messages"], [edited, deleted], "history afterwards")

    equal(await bob("reading.unread", channel=room), {"channelId": room, "unreadCount": 1, "readSeq": 2, "hasMention": False}, "unread")
    equal(await bob("reading.total"), {"unreadCount": 1, "unreadChannelCount": 1}, "total unread")
    equal(await bob("reading.mark", channel=room, seq=3), {"channelId": room, "unreadCount": 0, "readSeq": 3, "hasMention": False}, "marked")

    updated = await ann("channel.update", channel=room, displayName="New", tags=[])
    equal([updated["displayName"], updated["tags"], updated["metadata"], updated["seq"]], ["New", [], {"k": [1, None]}, 7], "updated channel")
    await refused(bob("channel.update", channel=room, displayName="mine"), "not_permitted")
    view = await bob("channel.get", channel=room)
    equal([view["channel"], view["lastMessage"]], [updated, deleted], "channel")
    # A single view brings its users, and in a page they are beside the items.
    equal(view.pop("users"), [who[deleted["sender"]]], "who is who in a channel")
    equal(await bob("channel.query"), {"items": [view], "users": [who[deleted["sender"]]]}, "own channels")

    me = await bob("user.updateMe", displayName="Bob", metadata={"a": {}})
    equal(await bob("user.me"), me, "oneself")
    equal(await ann("user.get", user=bob_id), me, "a user")
    equal([row["userId"] for row in await ann("user.getMany", users=[bob_id, "nobody-" + RUN, ann_id])], sorted([ann_id, bob_id]), "users")
    await refused(bob("user.upsert", user=ann_id, displayName="no"), "not_permitted")

    changes = await bob("stream.channelChanges", channel=room, after=4)
    equal([changes["stream"], changes["seq"], changes["hasMore"]], ["channel:" + room, 7, False], "changes")
    equal(changes["rows"]["messages"], [edited, deleted], "changed messages")
    own = await bob("stream.myChanges", after=0)
    equal([own["stream"], own["hasMore"], own["rows"]["users"]], ["user:" + bob_id, False, [me]], "own changes")
    resumed = await bob("stream.resume", after=own["seq"], channels={room: 7})
    equal([resumed["channels"], resumed["hasMore"]], [[], False], "a resume without news")

    equal(await bob("member.leave", channel=room), {}, "left")
    equal(await bob("member.leave", channel=room), {}, "left again")
    await refused(bob("message.list", channel=room), "not_member")
    await refused(bob("message.get", channel=room, message=first["messageId"]), "not_member")
    equal(await ann("channel.delete", channel=room), {}, "deleted channel")
    await refused(ann("message.send", channel=room, **sending("too late")), "not_permitted")
    equal((await ann("message.list", channel=room))["messages"], [edited, deleted], "history of a deleted channel")
    await refused(bob("channel.get", channel=room), "not_found", field="channel")


@case("the life of a channel over HTTP, each answer as /openapi.json describes it")
async def over_http(world):
    ann, bob = await world.http("ann"), await world.http("bob")
    await life_of_a_channel(world, ann.call, bob.call, world.user("ann"), world.user("bob"))


@case("the life of a channel over the socket, each answer as /openapi.json describes it")
async def over_the_socket(world):
    ann, bob = await world.client("ann"), await world.client("bob")
    schemas = await world.http("ann")

    def checked(client):
        async def call(name, **fields):
            result = await client.call(name, **fields)
            schemas.validate(result, schemas.operations[name][2]["responses"]["200"]["content"]["application/json"]["schema"])
            return result

        return call

    await life_of_a_channel(world, checked(ann), checked(bob), world.user("ann"), world.user("bob"))
    for event in ann.events + bob.events:
        schemas.validate(event["rows"], {"$ref": "#/components/schemas/Rows"})
    kinds = [event["event"] for event in bob.events]
    equal(
        kinds,
        ["member.joined", "message.new", "message.new", "message.updated", "message.deleted", "reading.marked", "channel.updated",
         "user.updated", "member.left"],
        "events of the one who joined")
    equal(ann.events[-1]["event"], "channel.deleted", "last event of the owner")
    equal(world.channel() in ann.replica.channels, False, "the deleted channel is one's own")


async def mentions_and_lists(world, ann, bob, admin, bob_id):
    """A message with every possible field, its mentions, and its lists; the same over both transports."""
    room = world.channel()
    await ann("channel.create", channel=room, type="community")
    await bob("member.join", channel=room)
    sent = await ann(
        "message.send", channel=room, clientId="1", text="@bob @all", mentionees=[{"type": "user", "users": [bob_id, "nobody"]}, {"type": "channel"}],
        metaArrays={"votes": ["b", "a", "b"]}, pushOption="force", targetLanguages=["pl"])
    equal(
        [sent[key] for key in ("mentionees", "droppedMentions", "metaArrays", "pushOption", "targetLanguages")],
        [[{"type": "user", "users": [bob_id]}, {"type": "channel"}], ["nobody"], {"votes": ["a", "b"]}, "force", ["pl"]], "sent message")
    sent.pop("droppedMentions")
    assert "kind" not in sent and "isSilent" not in sent, sent
    equal((await bob("reading.unread", channel=room))["hasMention"], True, "mentioned")
    view = await bob("channel.get", channel=room)
    equal([view["hasMention"], view["membership"]["mentionSeq"], view["membership"]["mentionMessage"]], [True, sent["seq"], sent["messageId"]], "channel")
    listed = (await bob("mention.list", limit=1))["items"]
    equal(listed, [sent], "own mentions")
    equal((await bob("mention.list", channel=room))["items"], [sent], "the channel's mentions")
    edited = await ann("message.edit", channel=room, message=sent["messageId"], mentionees=[])
    assert "mentionees" not in edited, edited
    equal((await bob("reading.unread", channel=room))["hasMention"], False, "no longer mentioned")
    changed = await ann("message.updateMetaArrays", channel=room, message=sent["messageId"], create=["seen"], add={"seen": ["ann"]}, removeValues={"votes": ["b"]})
    equal(changed["metaArrays"], {"seen": ["ann"], "votes": ["a"]}, "lists")
    await refused(bob("message.updateMetaArrays", channel=room, message=sent["messageId"], create=["x"]), "not_message_owner")
    silent = await ann("message.send", channel=room, clientId="2", text="Berlin", kind="custom", customType="card", isSilent=True)
    equal([silent["kind"], silent["isSilent"], (await bob("reading.unread", channel=room))["unreadCount"]], ["custom", True, 1], "silent message")
    told = await admin("message.sendAdmin", channels=[room], clientId="1", text="News")
    equal([[message["kind"], message["channelId"]] for message in told["messages"]], [["admin", room]], "admin message")
    await refused(bob("message.sendAdmin", channels=[room], clientId="1", text="News"), "not_permitted", field="channels[0]")


@case("SB-36 R21 mentions, lists and messages of every kind over HTTP, each answer as /openapi.json describes it")
async def mentions_over_http(world):
    ann, bob = await world.http("ann"), await world.http("bob")
    admin = await world.http("root", "--role", "admin")
    await mentions_and_lists(world, ann.call, bob.call, admin.call, world.user("bob"))


@case("SB-36 R21 mentions, lists and messages of every kind over the socket; the mentioned user is notified")
async def mentions_over_the_socket(world):
    ann, bob = await world.client("ann"), await world.client("bob")
    admin = await world.client("root", "--role", "admin")
    await mentions_and_lists(world, ann.call, bob.call, admin.call, world.user("bob"))
    kinds = [event["event"] for event in bob.events]
    equal(
        kinds, ["member.joined", "message.new", "mention.received", "message.updated", "reading.marked", "message.updated", "message.new", "message.new"],
        "events of the one who is mentioned")
    rows = bob.events[1]["rows"]["channelMentions"]
    equal([[row["seq"], row["mentionSeq"]] for row in rows], [[3, 3]], "mention of the channel")


@case("hasMention computed from rows, as in docs/protocol.md, equals reading.unread after every step")
async def mentioned(world):
    room, (ann, bob) = await world.room("ann", "bob")
    by_name, everybody = {"type": "user", "users": [world.user("bob")]}, {"type": "channel"}

    async def send(client, *mentionees):
        return (await client.call("message.send", channel=room, **sending("hi", mentionees=list(mentionees))))["messageId"]

    async def expect(is_mentioned, what):
        """Compares both clients' results with the server's, and bob's with the expected one."""
        head = (await ann.call("channel.get", channel=room))["channel"]["seq"]
        for client in (ann, bob):
            own = (await client.call("stream.myChanges", after=0))["seq"]
            await client.until(lambda: client.replica.position >= own, "the user's stream")
            await client.until_at(room, head)
            answer = await client.call("reading.unread", channel=room)
            equal(client.replica.has_mention(room), answer["hasMention"], f"{what}: hasMention of {client.replica.user}")
        equal(bob.replica.has_mention(room), is_mentioned, what)

    first = await send(ann)
    await expect(False, "a message without mentions")
    await send(ann, by_name)
    await expect(True, "a mention by name")
    await bob.call("reading.mark", channel=room)
    await expect(False, "a mention that was read")
    await ann.call("message.edit", channel=room, message=first, mentionees=[everybody])
    await expect(True, "a message that was read, and mentions the channel since an edit")
    await bob.call("reading.mark", channel=room)
    await expect(False, "the edit was read")
    concealed = await send(ann, everybody)
    await expect(True, "a mention of the channel")
    await bob.call("message.deleteForMe", channel=room, messages=[concealed])
    await expect(False, "a mention of the channel that the user has deleted for themselves")
    await send(bob, everybody)
    await expect(False, "one's own mention of the channel")
    taken_back = await send(ann, by_name, everybody)
    await expect(True, "a mention by name and of the channel")
    await ann.call("message.edit", channel=room, message=taken_back, mentionees=[])
    await expect(False, "mentions that an edit took back")
    deleted = await send(ann, everybody)
    await expect(True, "another mention of the channel")
    await ann.call("message.delete", channel=room, message=deleted)
    await expect(False, "the mention of a deleted message")
    await send(ann, everybody)
    await bob.call("channel.resetHistory", channel=room)
    await expect(False, "a mention up to the history floor")
    await send(ann, everybody)
    await expect(True, "the last mention")
    await ann.call("channel.update", channel=room, policy={"read": "owners"})
    await expect(False, "a user who may not read the channel")


@case("the server's own messages have client ids that no call can have: system/ and digits")
async def system_messages(world):
    room, (ann,) = await world.room("ann")
    admin, bob = await world.client("root", "--role", "admin"), await world.client("bob")
    await admin.call("channel.update", channel=room, policy={"announcesJoins": True})
    await bob.call("member.join", channel=room)
    messages = (await ann.call("message.list", channel=room))["messages"]
    equal([[message["kind"], message["sender"]] for message in messages], [["system", world.user("bob")]], "messages")
    message = messages[0]
    equal([message["customType"], message["metadata"]], ["member.joined", {"users": [world.user("bob")], "userCount": 1}], "what it says")
    assert re.fullmatch(r"system/[0-9]+", message["clientId"]), message["clientId"]
    call = bob.call("message.send", channel=room, clientId=message["clientId"], text="hello")
    await refused(call, "invalid_argument", field="clientId")
    equal((await bob.call("reading.unread", channel=room))["unreadCount"], 0, "unread")


@case("the highlighted parts of a text are the same in every language: Tests/Vectors/mentions.json")
async def highlights(world):
    vectors = json.loads((pathlib.Path(__file__).parents[1] / "Vectors" / "mentions.json").read_text(encoding="utf-8"))

    def highlight(text, index, length, **_):
        units = text.encode("utf-16-le")
        count = len(units) // 2
        if index < 0 or length <= 0 or index >= count or length > count - index:
            return None
        try:
            return units[index * 2 : min(index + length + 1, count) * 2].decode("utf-16-le")
        except UnicodeDecodeError:
            return None

    for vector in vectors["cases"]:
        mentions = [entry for entry in vector["metadata"]["mentioned"] if entry["type"] in ("user", "channel")]
        found = [highlight(vector["text"], **mention) for mention in mentions]
        equal(found, vector["highlights"], vector["name"])


@case("an admin creates a user and sees channels without being a member")
async def admin(world):
    root, ann = await world.http("root", "--role", "admin"), await world.http("ann")
    user = await root.call("user.upsert", user=world.user("zoe"), displayName="Zoe")
    equal((await ann.call("user.get", user=world.user("zoe")))["displayName"], "Zoe", "name of the made user")
    created = await ann.call("channel.create", type="community", users=[user["userId"]])
    room = created["channel"]["channelId"]
    equal(created["channel"]["memberCount"], 2, "members")
    sent = await ann.call("message.send", channel=room, **sending("hi"))
    equal((await root.call("message.list", channel=room))["messages"], [sent], "history for an admin")
    equal((await root.call("message.delete", channel=room, message=sent["messageId"]))["text"], "", "deleted by an admin")


@case("an admin shuts a user out and lets them in, and revokes all of a user's tokens or one of them")
async def shut_out(world):
    root, bob_id = await world.http("root", "--role", "admin"), world.user("bob")
    token, single = await world.token("bob"), await world.token("bob")
    claims = single.split(".")[1]
    token_id = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))["jti"]
    bob, other = Client(URL, bob_id, token), await world.http("bob")
    await bob.connect()
    for operation, fields in (
        ("user.deactivate", {"user": bob_id}), ("user.reactivate", {"user": bob_id}), ("user.revokeTokens", {"user": bob_id}),
        ("token.revoke", {"tokenId": token_id}),
    ):
        await refused(other.call(operation, **fields), "not_permitted", status=403)
    equal("deactivatedAt" in await root.call("user.deactivate", user=bob_id), True, "an admin sees since when")
    await bob.until(lambda: bob.closed, "the end of the socket")
    equal(bob.closed.code, 4005, "close code of a deactivated user")
    await refused(other.call("user.me"), "user_deactivated", status=403)
    equal((await root.call("user.reactivate", user=bob_id)).get("deactivatedAt"), None, "reactivated")
    equal((await other.call("user.me"))["userId"], bob_id, "the same token again")

    by_id = await world.stack.enter_async_context(HTTPClient(URL, world.description, single))
    equal((await by_id.call("user.me"))["userId"], bob_id, "a token with an id")
    equal((await root.call("token.revoke", tokenId=token_id))["tokenId"], token_id, "revoked token")
    await refused(by_id.call("user.me"), "token_revoked", status=401)
    equal((await other.call("user.me"))["userId"], bob_id, "another token of the user")
    equal((await root.call("user.revokeTokens", user=bob_id))["userId"], bob_id, "whose tokens are revoked")
    await refused(other.call("user.me"), "token_revoked", status=401)


@case("an admin lists the effects that failed permanently, and can't retry a missing one")
async def effects(world):
    root, bob = await world.http("root", "--role", "admin"), await world.http("bob")
    retry = {"kind": "idempotencyKeys.expire", "key": "none"}
    equal(await root.call("effect.listDead"), {"items": []}, "dead effects")
    await refused(root.call("effect.retry", **retry), "not_found", field="key", status=404)
    await refused(bob.call("effect.listDead"), "not_permitted", status=403)
    await refused(bob.call("effect.retry", **retry), "not_permitted", status=403)


@case("a backend creates a channel for users, invites, and answers in a user's name, over plain HTTP")
async def backend(world):
    service = await world.http("backend", "--role", "service")
    ann_id, bob_id = world.user("ann"), world.user("bob")
    as_ann, as_bob = ({"Roost-Act-As": urllib.parse.quote(user, safe="")} for user in (ann_id, bob_id))
    # Users exist from the first request in their name.
    equal((await service.call("user.updateMe", headers=as_ann, displayName="Ann"))["userId"], ann_id, "the user acted for")
    await service.call("preferences.update", headers=as_bob, autoAcceptInvitations=False)

    key = {"Idempotency-Key": f'"order {world.name}"'}
    fields = {"type": "group", "displayName": "Order", "users": [ann_id], "metadata": {"order": 7}}
    made = await service.call("channel.create", headers=key, **fields)
    equal(await service.call("channel.create", headers=key, **fields), made, "the same request again")
    refusal = await refused(service.call("channel.create", headers=key, **{**fields, "type": "community"}), "key_reused", field="idempotencyKey")
    equal(refusal.status, 422, "status")
    room = made["channel"]["channelId"]
    equal([made["channel"]["memberCount"], made.get("membership")], [1, None], "a channel without its maker")

    results = (await service.call("invitation.send", channel=room, users=[bob_id], welcome="Your order"))["results"]
    equal([(one["userId"], one["outcome"]) for one in results], [(bob_id, "invited")], "invited")
    mine = await service.call("invitation.mine", headers=as_bob)
    equal([(one["channel"]["channelId"], one["invitation"]["welcome"]) for one in mine["items"]], [(room, "Your order")], "invitations of the user")
    accepted = await service.call("invitation.accept", headers=as_bob, channel=room)
    equal([accepted["membership"]["role"], accepted["channel"]["memberCount"]], ["member", 2], "accepted")
    sent = await service.call("message.send", headers=as_bob, channel=room, **sending("thanks"))
    equal(sent["sender"], bob_id, "sender")

    listed = await service.call("channel.query", headers=as_bob, types=["group", "community"], includingUsers=[ann_id], unreadOnly=False)
    equal([one["channel"]["channelId"] for one in listed["items"]], [room], "the user's channels")
    members = await service.call("member.list", channel=room, states=["member"], sort="userId")
    equal([one["member"]["userId"] for one in members["items"]], sorted([ann_id, bob_id]), "members for the backend")

    # On behalf of a user the user's rights apply, and only a backend can act for one.
    await refused(service.call("channel.delete", headers=as_bob, channel=room), "not_permitted", status=403)
    ann = await world.http("ann")
    await refused(ann.call("user.me", headers=as_bob), "not_permitted", field="Roost-Act-As", status=403)
    equal([one["channel"]["channelId"] for one in (await ann.call("channel.query"))["items"]], [room], "the other user's channels")

    version = {"If-Match": f'"{made["channel"]["metadataVersion"]}"'}
    await service.call("channel.update", headers=version, channel=room, metadata={"order": 8})
    await refused(service.call("channel.update", headers=version, channel=room, metadata={"order": 9}), "conflict_version", field="ifMetadataVersion", status=412)
    answer = await service.http.post(f"/v1/channels/{room}/freeze", headers=key)
    equal([service.problem(answer)[name] for name in ("code", "field")], ["invalid_argument", "Idempotency-Key"], "a header that nothing reads")


def key_of(milliseconds):
    """A UUID of version 7, which Python's library can't make yet."""
    value = milliseconds << 80 | uuid.uuid4().int & ((1 << 80) - 1)
    return str(uuid.UUID(int=value & ~(0xF << 76) | 0x7 << 76))


@case("a call repeated with its key, over either transport, has no further effect")
async def keys(world):
    room, (ann,) = await world.room("ann")
    http = await world.http("ann")
    now = round(datetime.datetime.fromisoformat(ann.connection.welcome["now"]).timestamp() * 1000)
    key = key_of(now)
    hidden = await ann.call("channel.hide", key=key, channel=room)
    equal(hidden["hiddenState"], "hiddenAllowAutoUnhide", "carried out")
    # Another device unhides the channel before the lost answer is requested again.
    await http.call("channel.unhide", channel=room)
    equal(await ann.call("channel.hide", key=key, channel=room), DONE, "repeated over the socket")
    for header in (key, f'"{key.upper()}"'):
        equal(await http.call("channel.hide", headers={"Idempotency-Key": header}, channel=room), DONE, "repeated over HTTP")
    equal((await http.call("channel.get", channel=room))["membership"]["hiddenState"], "unhidden", "nothing was done again")

    await refused(ann.call("channel.unhide", key=key, channel=room), "key_reused", field="key")
    await refused(ann.call("channel.hide", key=key, channel=room, allowAutoUnhide=False), "key_reused", field="key")
    await refused(http.call("channel.unhide", headers={"Idempotency-Key": key}, channel=room), "key_reused", field="Idempotency-Key", status=422)
    day = 86_400_000
    await refused(ann.call("channel.hide", key=key_of(now - 8 * day), channel=room), "key_expired", field="key")
    await refused(ann.call("channel.hide", key=key_of(now + 2 * day), channel=room), "invalid_argument", field="key")
    await refused(ann.call("channel.hide", key=str(uuid.uuid4()), channel=room), "invalid_argument", field="key")
    await refused(ann.call("user.me", key=key_of(now)), "invalid_argument", field="key")
    await refused(ann.call("message.send", key=key_of(now), channel=room, **sending("hi")), "invalid_argument", field="key")

    # Over HTTP first, then over a socket; a refused call keeps no key.
    key = key_of(now)
    await refused(http.call("channel.hide", headers={"Idempotency-Key": key}, channel=f"no-{room}"), "not_found", field="channel", status=404)
    await http.call("channel.hide", headers={"Idempotency-Key": key}, channel=room)
    equal(await ann.call("channel.hide", key=key, channel=room), DONE, "repeated over the other transport")


@case("watching marks the channel's events on this connection, and needs a socket")
async def watching(world):
    room, (ann, bob) = await world.room("ann", "bob")
    schemas = await world.http("ann")
    shown = await bob.call("channel.watch", channel=room, limit=5)
    schemas.validate(shown, {"$ref": "#/components/schemas/WatchedChannel"})
    equal([shown["online"], shown["watcherCount"], sorted(shown["members"])], [2, 1, sorted([world.user("ann"), world.user("bob")])], "state")
    await ann.call("message.send", channel=room, **sending("seen"))
    await bob.until_at(room, 3)
    await bob.call("channel.unwatch", channel=room)
    await ann.call("message.send", channel=room, **sending("heard"))
    await bob.until_at(room, 4)
    equal([event["watching"] for event in bob.events_of("channel:" + room)], [True, False], "marks")
    await refused(schemas.call("channel.watch", channel=room), "not_connected", status=409)


@case("signals say who types, who watches, who has read, and anything an app likes")
async def signals(world):
    room, (ann, bob) = await world.room("ann", "bob")
    http = await world.http("ann")
    bob_id, ann_id = world.user("bob"), world.user("ann")

    async def next_signal(client, kind):
        while True:
            signal = await asyncio.wait_for(client.connection.signals.get(), 20)
            if signal["signal"] == kind and signal["channel"] == room:
                return signal

    await bob.call("typing.start", channel=room)
    equal((await next_signal(ann, "typing.changed"))["typing"], {"users": [bob_id], "hasMore": False}, "who types")
    equal((await next_signal(bob, "typing.changed"))["typing"]["users"], [], "the typer's own device")
    await bob.call("typing.stop", channel=room)
    equal((await next_signal(ann, "typing.changed"))["typing"]["users"], [], "nobody")

    await ann.call("channel.watch", channel=room, limit=0)
    await bob.call("channel.watch", channel=room, limit=0)
    watching = set()
    while watching != {ann_id, bob_id}:
        change = (await next_signal(ann, "watching.changed"))["watching"]
        watching = watching.union(change["started"]).difference(change["stopped"])
    page = await http.call("channel.listWatchers", channel=room, limit=1, offset=1)
    equal([[user["userId"] for user in page["watchers"]], page["watcherCount"]], [[bob_id], 2], "a page of watchers")
    await refused(http.call("channel.listWatchers", channel=room, offset=10001), "limit_exceeded", field="offset", status=413)

    sent = await ann.call("message.send", channel=room, **sending("read me"))
    await bob.call("reading.mark", channel=room, seq=sent["seq"])
    equal([reader["userId"] for reader in (await next_signal(ann, "read.updated"))["read"]["readers"]], [bob_id], "who has read")
    readers = await http.call("reading.listReaders", channel=room, message=sent["messageId"])
    equal([[reader["userId"], reader["readSeq"]] for reader in readers["items"]], [[bob_id, sent["seq"]]], "readers")
    answer = await bob.call("reading.markUnread", channel=room, seq=sent["seq"])
    equal([answer["unreadCount"], answer["readSeq"]], [1, sent["seq"] - 1], "unread again")

    listed = await bob.call("device.list")
    equal([[device["deviceId"], device["platform"], device["isCurrent"]] for device in listed], [["interop", "Python", True]], "devices")
    equal([device["isCurrent"] for device in await http.call("device.list")], [False], "devices over HTTP")
    await refused(bob.call("device.signOut", device="unknown"), "not_found", field="device")

    draft = await bob.call("draft.set", channel=room, text="so far")
    equal(await bob.call("draft.get", channel=room), draft, "a draft")
    equal([[item["channelId"], item["text"]] for item in (await bob.call("draft.list"))["items"]], [[room, "so far"]], "drafts")
    equal((await bob.call("draft.set", channel=room, text=""))["text"], "", "a draft that was removed")

    await bob.call("signal.send", channel=room, type="wave", metadata={"hand": "left"})
    wave = await next_signal(ann, "custom")
    equal([wave["sender"], wave["custom"]], [bob_id, {"type": "wave", "metadata": {"hand": "left"}}], "an app's own")
    await refused(bob.call("signal.send", channel=room, type=""), "invalid_argument", field="type")
    outcomes = await asyncio.gather(*[bob.call("signal.send", channel=room, type="wave") for _ in range(30)], return_exceptions=True)
    codes = {outcome.code for outcome in outcomes if isinstance(outcome, Refusal)}
    equal(codes, {"rate_limited"}, "more than ten a second")


@case("messages that arrive while a user reads are read on their other devices; invisible means offline")
async def reading(world):
    room, (ann, bob) = await world.room("ann", "bob")
    bob_id, phone, http = world.user("bob"), await world.client("bob"), await world.http("bob")
    equal((await bob.call("reading.start", channel=room))["unreadCount"], 0, "nothing is unread")
    await refused(http.call("reading.start", channel=room), "not_connected", status=409)
    # The library answers the server's ping by itself, which advances the position.
    sent = await ann.call("message.send", channel=room, **sending("read at once"))
    async with asyncio.timeout(20):
        while (await phone.call("reading.unread", channel=room))["readSeq"] < sent["seq"]:
            await asyncio.sleep(0.05)
    await bob.call("reading.stop", channel=room)
    await ann.call("message.send", channel=room, **sending("not read"))
    equal((await phone.call("reading.unread", channel=room))["unreadCount"], 1, "unread after the end")

    online = (await ann.call("channel.watch", channel=room, limit=0))["online"]
    equal(online, 2, "members online")
    await phone.call("preferences.update", sharesPresence=False)
    async with asyncio.timeout(20):
        while True:
            signal = await ann.connection.signals.get()
            if signal["signal"] == "presence.changed" and bob_id in signal["presence"]["offline"]:
                break
    equal(signal["presence"], {"onlineCount": 1, "online": [], "offline": [bob_id], "isWhole": True}, "who went")
    members = await ann.call("member.list", channel=room)
    equal([entry["member"]["userId"] for entry in members["items"] if entry["isOnline"]], [world.user("ann")], "who is online")


@case("a new name is sent to users who see it, and after an absence in one answer")
async def names(world):
    room, (ann, bob) = await world.room("ann", "bob")
    bob_id, http = world.user("bob"), await world.http("ann")
    before = await bob.call("user.me")
    after = await bob.call("user.updateMe", displayName="Bob " + RUN)
    shown = {key: after[key] for key in ("userId", "displayName", "avatarFileId", "version") if key in after}
    async with asyncio.timeout(20):
        while True:
            signal = await ann.connection.signals.get()
            if signal["signal"] == "users.changed" and signal["channel"] == room:
                break
    equal(signal, {"signal": "users.changed", "channel": room, "users": {"users": [shown], "isWhole": True}}, "a new name")
    for client in (ann, http):
        versions = {bob_id: before["version"], world.user("ann"): 1 << 40, "nobody-" + RUN: 0}
        equal(await client.call("user.listChanged", versions=versions), {"users": [shown], "hasMore": False}, "who has changed")
        equal(await client.call("user.listChanged", versions={bob_id: after["version"]}), {"users": [], "hasMore": False}, "nobody else")
        await refused(client.call("user.listChanged", versions={bob_id: -1}), "invalid_argument", field="versions")


@case("presence of any users: who is online, and when the others last were")
async def online(world):
    ann, bob, http = await world.client("ann"), await world.client("bob"), await world.http("ann")
    bob_id = world.user("bob")
    for client in (ann, http):
        answer = await client.call("user.listPresence", users=[bob_id, "nobody-" + RUN])
        equal(answer, {"users": [{"userId": bob_id, "isOnline": True}], "pollSeconds": 60}, "bob is here")
    await bob.connection.close()
    async with asyncio.timeout(20):
        while True:
            answer = await http.call("user.listPresence", users=[bob_id])
            if "lastActiveAt" in answer["users"][0]:
                break
            await asyncio.sleep(0.2)
    equal(answer["users"][0]["isOnline"], False, "bob is gone")
    await refused(ann.call("user.listPresence", users=["u"] * 101), "limit_exceeded", field="users")


@case("ids are in normalization form C, and travel in paths")
async def identifiers(world):
    ann, http = await world.client("ann"), await world.http("ann")
    # The same letter, once as one scalar and once as two. Two ids that look alike must not be two channels.
    composed, decomposed = world.channel("caf\u00e9"), world.channel("cafe\u0301")
    await ann.call("channel.create", channel=composed, type="community")
    for client in (ann, http):
        await refused(client.call("channel.create", channel=decomposed, type="community"), "invalid_argument", field="channel")
        await refused(client.call("channel.get", channel=decomposed), "invalid_argument", field="channel")
        for name in ("", ".", "..", "a\u0000b", "a\u2028b", "a,b"):
            await refused(client.call("channel.create", channel=name, type="community"), "invalid_argument", field="channel")
        await refused(client.call("channel.create", channel="x" * 129, type="community"), "limit_exceeded", field="channel")
    names = ("a b", "50%", "日本", "a?b#c", "a+b&c=d", "...")
    for methods in world.description["paths"].values():
        for operation in methods.values():
            if operation["operationId"] not in ("channel.create", "channel.get"):
                continue
            (pattern,) = (schema["pattern"] for _, name, schema in described_fields(operation) if name == "channel")
            for name in ("", ".", "..", "a\u0000b", "a\u2028b", "a,b"):
                assert not re.search(pattern, name), f"{pattern} matches {name}"
            for name in names:
                assert re.search(pattern, name), f"{pattern} doesn't match {name}"
    for name in names:
        room = world.channel(name)
        await http.call("channel.create", channel=room, type="community")
        equal((await http.call("channel.get", channel=room))["channel"]["channelId"], room, "id from a path")


# MARK: Streams


@case("a second user gets every event, in order, with no seq left out")
async def order(world):
    room, (ann, bob, cat) = await world.room("ann", "bob", "cat")
    count = 300
    replies = []
    for number in range(count):
        for client in (ann, cat):
            replies.append(await client.post("message.send", channel=room, clientId=f"{number}", text=f"{number}"))
    sent = await asyncio.gather(*replies)
    for client in (ann, bob, cat):
        await client.until_at(room, 3 + 2 * count)
    events = bob.events_of("channel:" + room)
    # Cat joins third, which is sent to the first two.
    equal([event["seq"] for event in events], list(range(3, 4 + 2 * count)), "seqs")
    messages = [event["rows"]["messages"][0] for event in events[1:]]
    equal(messages, sorted(sent, key=lambda message: message["seq"]), "messages by event and by reply")
    for client in (ann, cat):
        own = [message["clientId"] for message in messages if message["sender"] == client.replica.user]
        equal(own, [str(number) for number in range(count)], "order of one sender")
        equal(client.events_of("channel:" + room)[-2 * count :], events[1:], "events of a sender")
    listed, after = [], 0
    while True:
        page = await bob.call("message.list", channel=room, after=after, limit=100)
        listed += page["messages"]
        if not page["hasNewer"]:
            break
        after = page["messages"][-1]["seq"]
    equal(listed, messages, "history")
    equal(bob.resumptions[1:], [], "resumes for gaps")


@case("the sender gets the event too, before the reply")
async def echo(world):
    room, (ann,) = await world.room("ann")
    phone = await world.client("ann")
    sent = await ann.call("message.send", channel=room, **sending("hi"))
    equal([event["rows"]["messages"] for event in ann.events_of("channel:" + room)], [[sent]], "events before the reply")
    await phone.until_at(room, 2)
    equal(phone.replica.channels[room].messages, {sent["messageId"]: sent}, "messages of the other device")


@case("a message sent again with the same clientId is stored once")
async def idempotency(world):
    room, (ann, bob) = await world.room("ann", "bob")
    http = await world.http("ann")
    first = await ann.call("message.send", channel=room, clientId="same", text="once")
    equal(await ann.call("message.send", channel=room, clientId="same", text="other"), first, "again on the socket")
    equal(await http.call("message.send", channel=room, clientId="same", text="once"), first, "again over HTTP")
    pipelined = [await ann.post("message.send", channel=room, clientId="race", text="x") for _ in range(20)]
    racing = [http.call("message.send", channel=room, clientId="race", text="x") for _ in range(5)]
    equal(len({message["messageId"] for message in await asyncio.gather(*pipelined, *racing)}), 1, "messages of a race")
    other = await bob.call("message.send", channel=room, clientId="same", text="once")
    assert other["messageId"] != first["messageId"], "a client id is the sender's own"
    equal([message["clientId"] for message in (await ann.call("message.list", channel=room))["messages"]], ["same", "race", "same"], "history")
    await ann.call("message.edit", channel=room, message=first["messageId"], text="now")
    await ann.call("member.leave", channel=room)
    equal(await ann.call("message.send", channel=room, clientId="same", text="once"), first, "again after leaving: as it was sent")
    await refused(ann.call("message.send", channel=room, **sending("new")), "not_member")


async def compare_unread(client, channels):
    for channel in channels:
        answer = await client.call("reading.unread", channel=channel)
        equal(client.replica.unread(channel), answer["unreadCount"], f"unread of {client.replica.user} in {channel}")
        equal(client.replica.channels[channel].membership["readSeq"], answer["readSeq"], "read position")
    equal(client.replica.total_unread(), await client.call("reading.total"), f"total unread of {client.replica.user}")


@case("unread counted from events equals reading.unread after every step")
async def unread(world):
    room, (ann, bob) = await world.room("ann", "bob")
    quiet = world.channel("quiet")
    await ann.call("channel.create", channel=quiet, type="community", users=[world.user("bob")])
    seqs = []
    steps = [
        (ann, "message.send", lambda: sending("1")), (ann, "message.send", lambda: sending("2")),
        (bob, "message.send", lambda: sending("3")), (bob, "reading.mark", lambda: {"seq": seqs[0]}),
        (ann, "message.send", lambda: sending("4")), (bob, "reading.mark", lambda: {"seq": seqs[1]}),
        (bob, "reading.mark", lambda: {"seq": seqs[0]}), (bob, "message.send", lambda: sending("5")),
        (ann, "reading.mark", lambda: {}), (bob, "reading.mark", lambda: {"seq": 1_000_000}),
        (ann, "message.send", lambda: sending("6")),
        # Silent messages are never unread, and don't count as read either.
        (ann, "message.send", lambda: {**sending("7"), "isSilent": True}), (bob, "message.send", lambda: sending("8")),
        # Emptying and hiding up to a seq leave later messages unread.
        (ann, "message.send", lambda: sending("9")), (ann, "message.send", lambda: sending("10")),
        (bob, "channel.resetHistory", lambda: {"upTo": seqs[-2]}),
        (ann, "channel.hide", lambda: {"upTo": seqs[0], "hidePreviousMessages": True}),
    ]
    for client, operation, fields in steps:
        result = await client.call(operation, channel=room, **fields())
        if operation == "message.send":
            seqs.append(result["seq"])
        for one in (ann, bob):
            await one.until_at(room, seqs[-1])
            await compare_unread(one, [room, quiet])
    await ann.call("message.send", channel=quiet, **sending("psst"))
    await bob.until_at(quiet, 2)
    await compare_unread(bob, [room, quiet])
    equal(bob.replica.total_unread(), {"unreadCount": 2, "unreadChannelCount": 2}, "total")
    # A user who joins later begins with nothing unread.
    cat = await world.client("cat")
    await cat.call("member.join", channel=room)
    await compare_unread(cat, [room])
    equal(cat.replica.unread(room), 0, "unread of a new member")


@case("unread stays exact when marks and messages are pipelined, for all devices of a user")
async def unread_pipelined(world):
    room, (ann, bob) = await world.room("ann", "bob")
    phone = await world.client("bob")
    # Each mark sends the membership again, so only events around the last one can reveal a fault. Hence many short rounds.
    for number in range(40):
        replies = []
        for _ in range(3):
            replies.append(await ann.post("message.send", channel=room, **sending("a")))
            replies.append(await bob.post("message.send", channel=room, **sending("b")))
            replies.append(await bob.post("reading.mark", channel=room))
            replies.append(await bob.post("message.send", channel=room, **sending("b")))
        replies.append(await phone.post("message.send", channel=room, **sending("p")))
        await asyncio.gather(*replies)
        head = (await ann.call("channel.get", channel=room))["channel"]["seq"]
        own = (await bob.call("stream.myChanges", after=0))["seq"]
        for client in (bob, phone):
            await client.until(lambda: client.replica.position >= own, "the user's stream")
            await client.until_at(room, head)
            await compare_unread(client, [room])


@case("a resume after a lost connection brings exactly the missed changes")
async def resume(world):
    room, (ann, bob) = await world.room("ann", "bob")
    silent, ended = world.channel("silent"), world.channel("ended")
    for channel in (silent, ended):
        await ann.call("channel.create", channel=channel, type="community", users=[world.user("bob")])
    known = [await ann.call("message.send", channel=room, **sending(f"known {number}")) for number in range(3)]
    await bob.until_at(room, known[-1]["seq"])
    await bob.until_at(ended, 1)
    count = len(bob.events)

    bob.connection.drop()
    await bob.until(lambda: bob.closed, "the end of the connection")
    late = world.channel("late")
    edited = await ann.call("message.edit", channel=room, message=known[0]["messageId"], text="edited")
    missed = [await ann.call("message.send", channel=room, **sending(f"missed {number}")) for number in range(4)]
    gone = await ann.call("message.delete", channel=room, message=missed[1]["messageId"])
    await ann.call("channel.update", channel=room, metadata={"away": True})
    await ann.call("channel.create", channel=late, type="community", users=[world.user("bob")])
    first = await ann.call("message.send", channel=late, **sending("welcome"))
    # The user's changes elsewhere are missed as well.
    elsewhere = await world.http("bob")
    own = await elsewhere.call("message.send", channel=room, **sending("from elsewhere"))
    await elsewhere.call("reading.mark", channel=room, seq=missed[0]["seq"])
    await elsewhere.call("member.leave", channel=ended)

    await bob.connect()
    equal(len(bob.resumptions), 1, "round trips")
    answer = bob.resumptions[0]
    changes = {changes["stream"]: changes for changes in answer["channels"]}
    equal(set(changes), {"channel:" + room, "channel:" + late}, "channels of the resume")
    by_id = {message["messageId"]: message for message in changes["channel:" + room]["rows"]["messages"]}
    expected = [edited, missed[0], gone, missed[2], missed[3], own]
    equal(by_id, {message["messageId"]: message for message in expected}, "missed messages")
    equal(changes["channel:" + room].get("isFresh"), None, "a channel that was known is fresh")
    equal([changes["channel:" + late]["isFresh"], changes["channel:" + late]["rows"]["messages"]], [True, [first]], "a new channel")
    equal(len(bob.events), count, "events that came for what was missed")

    fresh = await world.client("bob")
    equal(set(bob.replica.channels), set(fresh.replica.channels), "channels")
    for channel in bob.replica.channels:
        equal(state(bob.replica, channel), state(fresh.replica, channel), f"{channel} after the resume and afresh")
    await compare_unread(bob, [room, silent, late])
    # The stream continues from there.
    await ann.call("message.send", channel=room, **sending("live"))
    await bob.until_at(room, own["seq"] + 1)
    equal(bob.events[-1]["seq"], own["seq"] + 1, "the next event")


@case("a client that missed an event sees the gap and closes it")
async def gap(world):
    room, (ann, bob) = await world.room("ann", "bob")
    bob.lose = 3
    sent = [await ann.call("message.send", channel=room, **sending(str(number))) for number in range(5)]
    await bob.until_at(room, sent[-1]["seq"])
    equal(len(bob.resumptions), 2, "resumes: after the welcome, and for the gap")
    fresh = await world.client("bob")
    equal(state(bob.replica, room), state(fresh.replica, room), "the channel after the gap and afresh")
    # The same by the changes of one stream.
    changes = await bob.call("stream.channelChanges", channel=room, after=2, limit=2)
    equal([changes["rows"]["messages"], changes["seq"], changes["hasMore"]], [sent[:2], 4, True], "a page of changes")


@case("after more than 500 missed messages a resume answers with the newest ones")
async def far_behind(world):
    room, (ann, bob) = await world.room("ann", "bob")
    await ann.call("message.send", channel=room, **sending("known"))
    await bob.until_at(room, 3)
    for missed, expected in ((500, False), (501, True)):
        bob.connection.drop()
        await bob.until(lambda: bob.closed, "the end of the connection")
        sent = await asyncio.gather(*[await ann.post("message.send", channel=room, **sending(f"{n}")) for n in range(missed)])
        await bob.connect()
        changes = [changes for answer in bob.resumptions for changes in answer["channels"]]
        equal([one.get("isFresh", False) for one in changes], [expected] * len(changes), f"fresh after {missed}")
        equal(bob.replica.channels[room].position, sent[-1]["seq"], "position")
        await compare_unread(bob, [room])
    equal(list(bob.replica.channels[room].messages.values()), sent[-20:], "newest messages")


@case("a member who leaves gets nothing newer, and starts over after rejoining")
async def leaving(world):
    room, (ann, bob) = await world.room("ann", "bob")
    phone = await world.client("bob")
    await phone.call("channel.watch", channel=room)
    await ann.call("message.send", channel=room, **sending("heard"))
    await bob.call("member.leave", channel=room)
    await ann.call("message.send", channel=room, **sending("unheard"))
    for client in (bob, phone):
        await client.until(lambda: room not in client.replica.channels, "the end of the membership")
        await client.call("user.me")
        texts = [message["text"] for event in client.events_of("channel:" + room) for message in event["rows"].get("messages", [])]
        equal(texts, ["heard"], "texts of events")
        await refused(client.call("stream.channelChanges", channel=room, after=0), "not_member")
    await bob.call("member.join", channel=room)
    await ann.call("message.send", channel=room, **sending("again"))
    await phone.until_at(room, 7)
    await compare_unread(phone, [room])
    equal(phone.replica.unread(room), 1, "unread")


@case("a client with a position from before a restored backup is told to start over")
async def resync(world):
    room, (ann,) = await world.room("ann")
    await refused(ann.call("stream.myChanges", after=10**6), "resync_required", field="after")
    await refused(ann.call("stream.channelChanges", channel=room, after=10**6), "resync_required", field="after")
    stale = await world.client("ann")
    stale.replica.position = 10**6
    stale.held = []
    await stale.catch_up()
    equal(state(stale.replica, room), state(ann.replica, room), "the channel")
    epochs = {client.connection.welcome["epoch"] for client in (ann, stale)}
    equal(len(epochs), 1, "epochs of one server")


# MARK: Refusals


@case("refusals over HTTP are problem documents with their codes")
async def problems(world):
    ann, bob = await world.http("ann"), await world.http("bob")
    room = world.channel()
    await ann.call("channel.create", channel=room, type="community")
    path = f"/v1/channels/{room}/messages"

    async def request(client, method, url, content=None):
        answer = await client.http.request(method, url, content=content)
        document = client.problem(answer)
        return answer.status_code, document["code"], document.get("field")

    cases = [
        ("unknown channel", bob, "GET", "/v1/channels/nowhere-" + RUN, None, (404, "not_found", "channel")),
        ("not a member", bob, "POST", path, b'{"clientId":"1","text":"x"}', (403, "not_member", None)),
        ("not a member's history", bob, "GET", path, None, (403, "not_member", None)),
        ("bad JSON", ann, "POST", path, b'{"clientId":', (400, "invalid_argument", None)),
        ("no object", ann, "POST", path, b"[1]", (400, "invalid_argument", None)),
        ("invalid UTF-8", ann, "POST", path, b'{"clientId":"1","text":"\xff"}', (400, "invalid_argument", None)),
        ("unknown field", ann, "POST", path, b'{"clientId":"1","text":"x","txet":"y"}', (400, "invalid_argument", "txet")),
        ("unknown field in the query", ann, "GET", path + "?lmit=3", None, (400, "invalid_argument", "lmit")),
        ("missing field", ann, "POST", path, b'{"clientId":"1"}', (400, "invalid_argument", "text")),
        ("wrong type", ann, "POST", path, b'{"clientId":"1","text":7}', (400, "invalid_argument", "text")),
        ("empty text", ann, "POST", path, b'{"clientId":"1","text":""}', (400, "invalid_argument", "text")),
        ("field twice", ann, "POST", path, b'{"clientId":"1","text":"x","channel":"y"}', (400, "invalid_argument", "channel")),
        ("query where a body belongs", ann, "POST", path + "?text=x", b'{"clientId":"1"}', (400, "invalid_argument", "query")),
        ("too long", ann, "POST", path, json.dumps({"clientId": "1", "text": "x" * 20_001}).encode(), (413, "limit_exceeded", "text")),
        ("too large a body", ann, "POST", path, b" " * 1_048_577, (413, "limit_exceeded", "body")),
        ("page of 0", ann, "GET", path + "?limit=0", None, (400, "invalid_argument", "limit")),
        ("page of 101", ann, "GET", path + "?limit=101", None, (413, "limit_exceeded", "limit")),
        ("two positions", ann, "GET", path + "?before=1&after=1", None, (400, "invalid_argument", "before")),
        ("unknown message", ann, "DELETE", path + "/1", None, (404, "not_found", "message")),
        ("a message id that is none", ann, "DELETE", path + "/abc", None, (400, "invalid_argument", "message")),
        ("unknown route", ann, "GET", "/v1/nothing", None, (404, "unknown_operation", None)),
        ("wrong method", ann, "PATCH", "/v1/channels", b"{}", (405, "unknown_operation", None)),
        ("a taken id", ann, "POST", "/v1/channels", json.dumps({"channel": room, "type": "community"}).encode(), (409, "already_exists", "channel")),
        ("the socket without an upgrade", ann, "GET", "/v1/socket", None, (426, "invalid_argument", None)),
    ]
    for what, client, method, url, content, expected in cases:
        equal(await request(client, method, url, content), expected, what)
    equal((await ann.call("channel.get", channel=room))["channel"]["messageCount"], 0, "messages stored by refused calls")
    at_the_limit = await ann.call("message.send", channel=room, **sending("x" * 20_000))
    equal(len(at_the_limit["text"]), 20_000, "a text at the limit")


@case("a refused upgrade is answered with a problem document")
async def refused_upgrade(world):
    http = await world.http("ann")
    headers = {
        "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode(),
    }
    document = http.problem(await http.http.get("/v1/elsewhere", headers=headers))
    equal([document["status"], document["code"]], [404, "unknown_operation"], "an upgrade where there is no socket")


@case("the same refusals on the socket, which stays open")
async def refusals_on_the_socket(world):
    ann, bob = await world.client("ann"), await world.client("bob")
    room = world.channel()
    await ann.call("channel.create", channel=room, type="community")
    await refused(bob.call("channel.get", channel="nowhere-" + RUN), "not_found", field="channel")
    refusal = await refused(bob.call("message.send", channel=room, **sending("x")), "not_member")
    assert refusal.rule, "a refused permission names its rule"
    await refused(ann.call("message.send", channel=room, clientId="1", text="x", txet="y"), "invalid_argument", field="txet")
    await refused(ann.call("message.send", channel=room, clientId="1"), "invalid_argument", field="text")
    refusal = await refused(ann.call("message.send", channel=room, clientId="1", text="x" * 20_001), "limit_exceeded", field="text")
    equal(refusal.limit, 20_000, "limit")
    for text in ("{", "[]", '{"hello":1}', '{"authenticate":{"token":"x"}}'):
        count = len(ann.connection.errors)
        await ann.connection.socket.send(text)
        await ann.call("user.me")
        equal([error["code"] for error in ann.connection.errors[count:]], ["invalid_argument"], f"error frames for {text}")
    many = ann.call("message.send", channel=room, **sending("too many values", metadata={"n": [0] * 25_000}))
    await refused(many, "limit_exceeded", field="body")
    large = {"big": "ż" * 49_000}
    sent = await ann.call("message.send", channel=room, **sending("in one frame", metadata=large))
    equal(sent["metadata"], large, "metadata of a message in one frame")
    text = json.dumps({"call": 9_000_001, "operation": "user.me"}) + " " * 100_000
    reply = asyncio.get_running_loop().create_future()
    ann.connection.pending[9_000_001] = reply
    await ann.connection.socket.send([text[at : at + 30_000] for at in range(0, len(text), 30_000)])
    equal(await asyncio.wait_for(reply, 20), await ann.call("user.me"), "the answer to a message in fragments")


@case("a binary frame closes with 1003, invalid UTF-8 with 1007, a message over 1 MiB with 1009")
async def bad_frames(world):
    for content, options, expected in (
        (b"{}", {}, 1003), (b'"\xff\xfe"', {"text": True}, 1007), ("x" * 1_048_577, {}, 1009),
    ):
        connection = await Connection.open(URL, await world.token("ann"))
        # The server closes as soon as it has read the head of a frame that is too long, maybe while the rest is being sent.
        with contextlib.suppress(websockets.ConnectionClosed):
            await connection.socket.send(content, **options)
        await asyncio.wait_for(connection.ended(), 20)
        equal(connection.socket.close_code, expected, "close code")


# MARK: Tokens


def unsigned(header, claims, signature=b""):
    parts = [json.dumps(header).encode(), json.dumps(claims).encode(), signature]
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts)


@case("garbage, forged and `alg: none` tokens are refused over HTTP and on the socket")
async def bad_tokens(world):
    user = world.user("ann")
    claims = {"sub": user, "exp": 4_000_000_000, "role": "admin"}
    good = await world.token("ann")
    header, _, signature = good.split(".")
    tokens = {
        "garbage": "garbage",
        "three parts of nothing": "..",
        "alg none": unsigned({"alg": "none", "typ": "JWT"}, claims),
        "alg None with a signature": unsigned({"alg": "None"}, claims, b"x" * 32),
        "alg HS512": unsigned({"alg": "HS512", "typ": "JWT"}, claims, b"x" * 64),
        "a random signature": unsigned({"alg": "HS256", "typ": "JWT"}, claims, os.urandom(32)),
        "other claims under a good signature": ".".join([header, unsigned({}, claims).split(".")[1], signature]),
        "a cut signature": good[:-4],
    }
    for what, token in tokens.items():
        http = await world.stack.enter_async_context(HTTPClient(URL, world.description, token))
        await refused(http.call("user.me"), "unauthenticated", status=401)
        for in_header in (False, True):
            try:
                await asyncio.wait_for(Connection.open(URL, token, in_header=in_header), 20)
            except Closed as closed:
                equal((closed.code, closed.error and closed.error["code"]), (4001, "unauthenticated"), what)
            else:
                raise AssertionError(f"{what} was accepted")
    answer = await (await world.http("ann")).http.get("/v1/me", headers={"Authorization": ""})
    equal([answer.status_code, answer.headers.get("www-authenticate")], [401, "Bearer"], "no token")


@case("a socket is closed with 4002 when its token expires, and the token is refused from then on")
async def expiry(world):
    token = await world.token("ann", "--expires", "2")
    async with HTTPClient(URL, world.description, token) as http:
        client = Client(URL, world.user("ann"), token)
        await client.connect()
        await client.until(lambda: client.closed, "the end of the token")
        equal(client.closed.code, 4002, "close code")
        await refused(http.call("user.me"), "token_expired", status=401)
        for in_header in (False, True):
            try:
                await asyncio.wait_for(Connection.open(URL, token, in_header=in_header), 20)
            except Closed as closed:
                equal((closed.code, closed.error and closed.error["code"]), (4002, "token_expired"), "an expired token")
            else:
                raise AssertionError("an expired token was accepted")


@case("a token in the URL is ignored, one in the upgrade request's header isn't")
async def places_of_the_token(world):
    token = await world.token("ann")
    async with httpx.AsyncClient(base_url=URL, trust_env=False) as http:
        for query in (f"token={token}", f"access_token={token}", f"authorization=Bearer%20{token}"):
            answer = await http.get("/v1/me?" + query)
            equal([answer.status_code, answer.json()["code"]], [401, "unauthenticated"], "HTTP")
            socket = await open_socket(URL, path="/v1/socket?" + query)
            await socket.send('{"call":1,"operation":"user.me"}')
            equal(await close_code(socket), (4001, ["unauthenticated"]), "socket")
    connection = await Connection.open(URL, token, in_header=True)
    equal((await connection.call("user.me"))["userId"], world.user("ann"), "user of the header's token")
    await connection.close()


@case("a socket without a token is closed with 4003 after 10 seconds")
async def silence(world):
    socket = await open_socket(URL)
    equal(await close_code(socket), (4003, []), "close")


# MARK: The command line


class Chat:
    """`roost chat CHANNEL --plain`: each line of stdin is sent, each message is printed as a line on stdout."""

    def __init__(self, process):
        self.process = process
        self.lines = []

    @classmethod
    async def start(cls, channel, user):
        return cls(
            await asyncio.create_subprocess_exec(
                BINARY, "chat", channel, "--as", user, "--plain", "--url", URL, "--data", DATA, stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE)
        )

    async def type(self, line, arrives):
        """Types a line, and waits until it has arrived or the process has ended."""
        self.process.stdin.write(line.encode() + b"\n")
        arriving, ending = asyncio.ensure_future(arrives), asyncio.ensure_future(self.process.wait())
        try:
            await asyncio.wait({arriving, ending}, return_when=asyncio.FIRST_COMPLETED)
            if not arriving.done():
                raise AssertionError(f"`roost chat` ended with {ending.result()} before {line!r} arrived")
            await arriving
        finally:
            arriving.cancel()
            ending.cancel()

    async def line(self, holding):
        """The next line of stdout that contains a text."""
        try:
            async with asyncio.timeout(20):
                while raw := await self.process.stdout.readline():
                    line = raw.decode().rstrip("\n")
                    self.lines.append(line)
                    if holding in line:
                        return line
        except TimeoutError:
            pass
        raise AssertionError(f"{holding!r} is not among the lines of `roost chat`: {self.lines}")

    async def __aenter__(self):
        return self

    async def __aexit__(self, kind, *_):
        with contextlib.suppress(ProcessLookupError):
            self.process.terminate()
        try:
            _, errors = await asyncio.wait_for(self.process.communicate(), 10)
        except TimeoutError:
            self.process.kill()
            _, errors = await self.process.communicate()
        if kind and errors:
            print("       stderr of `roost chat`: " + errors.decode(errors="replace").strip().replace("\n", "\n         "))


async def general(world, name):
    """The channel `general`, made if it doesn't exist, and a client that is its member."""
    client = await world.client(name)
    try:
        await client.call("channel.create", channel="general", type="community", displayName="General")
    except Refusal as refusal:
        equal(refusal.code, "already_exists", "creating the channel")
    await client.call("member.join", channel="general")
    await client.until(lambda: "general" in client.replica.channels, "the membership")
    return client


def arrival(client, text):
    """Waits for the event of a message that the command line's user sent."""

    def has_arrived():
        messages = [message for event in client.events_of("channel:general") for message in event["rows"].get("messages") or []]
        return any(message["sender"] == "cli-user" and message["text"] == text for message in messages)

    return client.until(has_arrived, f"{text!r}, which was typed,")


@case("this client and the command line chat with each other")
async def with_the_command_line(world):
    ann = await general(world, "ann")
    async with await Chat.start("general", "cli-user") as chat:
        for text in (f"from the terminal {world.name}", f"żółw 🐢 \\ \"{world.name}\""):
            await chat.type(text, arrival(ann, text))
        for text in (f"from Python {world.name}", f"日本 🐦 {world.name}"):
            await ann.call("message.send", channel="general", **sending(text))
            line = await chat.line(text)
            assert re.fullmatch(r"\[\d\d:\d\d\] " + re.escape(f"{world.user('ann')}: {text}"), line), f"the line is {line!r}"
        await chat.type(f"bye {world.name}", arrival(ann, f"bye {world.name}"))


@case("control characters of a message don't reach the terminal")
async def control_characters(world):
    ann = await general(world, "ann")
    async with await Chat.start("general", "cli-user") as chat:
        await chat.type(f"ready {world.name}", arrival(ann, f"ready {world.name}"))
        await ann.call("message.send", channel="general", **sending(f"\x1b[2J\x1b]0;title\x07\x9b31m\r\x08red {world.name}"))
        line = await chat.line(f"red {world.name}")
        equal([character for character in line if ord(character) < 32 or 127 <= ord(character) < 160], [], "control characters")


# MARK: Running


async def main(chosen):
    async with httpx.AsyncClient(base_url=URL, trust_env=False, timeout=20) as http:
        description = (await http.get("/openapi.json")).json()
        World.socket_description = (await http.get("/asyncapi.json")).json()
    Connection.frames = FrameCheck(World.socket_description)
    passed, failed = 0, 0
    for title, function in CASES:
        if chosen and not any(word in title for word in chosen):
            continue
        try:
            # Alone it takes a minute; beside other tests it has taken six.
            seconds = 1200 if function is schemathesis else 300
            async with asyncio.timeout(seconds), contextlib.AsyncExitStack() as stack:
                await function(World(description, stack))
            equal(Connection.undescribed, [], "frames that /asyncapi.json describes otherwise")
        except Exception as error:
            failed += 1
            steps = [step for step in traceback.extract_tb(error.__traceback__) if step.filename == __file__]
            place = f" (line {', '.join(str(step.lineno) for step in steps[1:])})" if len(steps) > 1 else ""
            print(f"FAILED {title}{place}\n       {type(error).__name__}: {str(error)[:2000]}", flush=True)
            Connection.undescribed.clear()
        else:
            passed += 1
            print(f"ok     {title}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1:])))
