"""centrifuge-python, unmodified, against the server named in the environment."""

import asyncio
import base64
import hashlib
import hmac
import json
import os
import unittest

from cent import AsyncClient, PublishRequest
from centrifuge import (
    CentrifugeError,
    Client,
    ClientEventHandler,
    SubscriptionEventHandler,
)

ADDRESS = os.environ["MOTET_WEBSOCKET"]
WAIT_S = 5


def token(claims):
    def part(value):
        return base64.urlsafe_b64encode(value).rstrip(b"=")

    signed = part(b'{"alg":"HS256","typ":"JWT"}') + b"." + part(json.dumps(claims).encode())
    secret = os.environ["MOTET_TOKEN_SECRET"].encode()
    return (signed + b"." + part(hmac.new(secret, signed, hashlib.sha256).digest())).decode()


class Events(SubscriptionEventHandler):
    def __init__(self):
        self.publications = asyncio.Queue()
        self.subscribed = asyncio.Queue()
        self.joins = asyncio.Queue()

    async def on_subscribed(self, ctx):
        self.subscribed.put_nowait(ctx)

    async def on_publication(self, ctx):
        self.publications.put_nowait(ctx.pub)

    async def on_join(self, ctx):
        self.joins.put_nowait(ctx.info)


class ClientEvents(ClientEventHandler):
    def __init__(self):
        self.disconnected = asyncio.Queue()

    async def on_disconnected(self, ctx):
        self.disconnected.put_nowait(ctx)


def soon(awaitable):
    return asyncio.wait_for(awaitable, WAIT_S)


class Cases:
    use_protobuf = False

    def client(self, **options):
        address = ADDRESS + ("?format=protobuf" if self.use_protobuf else "")
        return Client(address, use_protobuf=self.use_protobuf, proxy=None, **options)

    def pack(self, value):
        return json.dumps(value).encode() if self.use_protobuf else value

    def unpack(self, data):
        return json.loads(data) if self.use_protobuf else data

    def channel(self, name):
        return f"{name}-{'protobuf' if self.use_protobuf else 'json'}"

    async def publish_by_api(self, channel, data):
        client = AsyncClient(os.environ["MOTET_API"], os.environ["MOTET_API_KEY"])
        try:
            return await client.publish(PublishRequest(channel=channel, data=data))
        finally:
            await client.close()

    async def test_publish_echo_join_presence_and_history(self):
        client = self.client()
        events = Events()
        channel = self.channel("python")
        subscription = client.new_subscription(channel, events)
        await client.connect()
        await subscription.subscribe()
        await soon(subscription.ready())
        self.assertEqual((await soon(events.joins.get())).user, "")
        await subscription.publish(self.pack({"n": 1}))
        publication = await soon(events.publications.get())
        self.assertEqual((self.unpack(publication.data), publication.offset), ({"n": 1}, 1))
        stats = await subscription.presence_stats()
        self.assertEqual((stats.num_clients, stats.num_users), (1, 1))
        self.assertEqual(len((await subscription.presence()).clients), 1)
        history = await subscription.history(limit=10)
        self.assertEqual([self.unpack(p.data) for p in history.publications], [{"n": 1}])
        with self.assertRaises(CentrifugeError):
            await client.rpc("anything", self.pack({}))
        await client.disconnect()

    async def test_missed_publications_are_recovered(self):
        client = self.client()
        events = Events()
        channel = self.channel("python-recovery")
        subscription = client.new_subscription(channel, events)
        await client.connect()
        await subscription.subscribe()
        await soon(events.subscribed.get())
        await self.publish_by_api(channel, {"n": 1})
        await soon(events.publications.get())
        await client.disconnect()
        for n in (2, 3):
            await self.publish_by_api(channel, {"n": n})
        await client.connect()
        context = await soon(events.subscribed.get())
        self.assertTrue(context.was_recovering and context.recovered)
        missed = [self.unpack((await soon(events.publications.get())).data) for _ in (2, 3)]
        self.assertEqual(missed, [{"n": 2}, {"n": 3}])
        await client.disconnect()

    async def test_a_subscription_token_opens_a_private_channel(self):
        async def subscription_token(channel):
            return token({"sub": "42", "channel": channel})

        client = self.client(token=token({"sub": "42"}))
        subscription = client.new_subscription("private:python", get_token=subscription_token)
        await client.connect()
        await subscription.subscribe()
        await soon(subscription.ready())
        await client.disconnect()

    async def test_a_forged_token_is_disconnected_with_3500(self):
        events = ClientEvents()
        client = self.client(token=token({"sub": "42"}) + "x", events=events)
        await client.connect()
        self.assertEqual((await soon(events.disconnected.get())).code, 3500)


class JsonCases(Cases, unittest.IsolatedAsyncioTestCase):
    pass


class ProtobufCases(Cases, unittest.IsolatedAsyncioTestCase):
    use_protobuf = True


if __name__ == "__main__":
    unittest.main()
