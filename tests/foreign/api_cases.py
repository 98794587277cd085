"""cent, unmodified, against the server named in the environment."""

import os
import unittest

from cent import (
    BatchRequest,
    BroadcastRequest,
    CentApiResponseError,
    CentUnauthorizedError,
    ChannelsRequest,
    Client,
    DisconnectRequest,
    HistoryRemoveRequest,
    HistoryRequest,
    InfoRequest,
    PresenceRequest,
    PresenceStatsRequest,
    PublishRequest,
    RefreshRequest,
    StreamPosition,
    SubscribeRequest,
    UnsubscribeRequest,
)


class ApiCases(unittest.TestCase):
    def setUp(self):
        self.client = Client(os.environ["MOTET_API"], os.environ["MOTET_API_KEY"])

    def tearDown(self):
        self.client.close()

    def code(self, call):
        with self.assertRaises(CentApiResponseError) as caught:
            call()
        return caught.exception.code

    def test_publish_history_and_history_remove(self):
        for n in (1, 2, 3):
            result = self.client.publish(
                PublishRequest(channel="api", data={"n": n}, tags={"kind": "test"})
            )
            self.assertEqual(result.offset, n)
            self.assertEqual(len(result.epoch), 8)
        page = self.client.history(HistoryRequest(channel="api", limit=2, reverse=True))
        self.assertEqual([p.data for p in page.publications], [{"n": 3}, {"n": 2}])
        self.assertEqual(page.publications[0].tags, {"kind": "test"})
        since = StreamPosition(offset=2, epoch=page.epoch)
        page = self.client.history(HistoryRequest(channel="api", limit=10, since=since))
        self.assertEqual([p.offset for p in page.publications], [3])
        stale = StreamPosition(offset=2, epoch="another")
        request = HistoryRequest(channel="api", limit=10, since=stale)
        self.assertEqual(self.code(lambda: self.client.history(request)), 112)
        self.client.history_remove(HistoryRemoveRequest(channel="api"))
        page = self.client.history(HistoryRequest(channel="api", limit=10))
        self.assertEqual((page.publications, page.offset), ([], 3))

    def test_an_idempotency_key_is_taken_once(self):
        request = PublishRequest(channel="api-once", data={}, idempotency_key="k")
        offsets = [self.client.publish(request).offset for _ in range(2)]
        self.assertEqual(offsets, [1, 1])

    def test_broadcast_answers_for_each_channel(self):
        request = BroadcastRequest(channels=["api-a", "nowhere:b"], data={})
        responses = self.client.broadcast(request).responses
        self.assertEqual(responses[0].result.offset, 1)
        self.assertEqual(responses[1].error.code, 102)

    def test_a_batch_is_answered_in_order(self):
        requests = [
            PublishRequest(channel="api-batch", data={}),
            PresenceStatsRequest(channel="api-batch"),
            InfoRequest(),
        ]
        replies = self.client.batch(BatchRequest(requests=requests)).replies
        self.assertEqual(replies[0].offset, 1)
        self.assertEqual(replies[1].num_clients, 0)
        self.assertEqual(len(replies[2].nodes), 1)

    def test_presence_channels_and_info(self):
        self.assertEqual(self.client.presence(PresenceRequest(channel="api")).presence, {})
        self.assertEqual(self.client.channels(ChannelsRequest(pattern="none*")).channels, {})
        node = self.client.info(InfoRequest()).nodes[0]
        self.assertEqual(node.name, "motet")
        self.assertEqual(self.code(lambda: self.client.presence(
            PresenceRequest(channel="smallhistory:a"))), 108)

    def test_users_that_are_not_there_are_no_error(self):
        user = "nobody"
        self.client.subscribe(SubscribeRequest(user=user, channel="api"))
        self.client.unsubscribe(UnsubscribeRequest(user=user, channel="api"))
        self.client.refresh(RefreshRequest(user=user))
        self.client.disconnect(DisconnectRequest(user=user))

    def test_bad_calls_have_their_codes(self):
        unknown = PublishRequest(channel="nowhere:a", data={})
        self.assertEqual(self.code(lambda: self.client.publish(unknown)), 102)
        empty = PublishRequest(channel="", data={})
        self.assertEqual(self.code(lambda: self.client.publish(empty)), 107)

    def test_a_wrong_key_is_unauthorized(self):
        client = Client(os.environ["MOTET_API"], "wrong")
        with self.assertRaises(CentUnauthorizedError):
            client.publish(PublishRequest(channel="api", data={}))
        client.close()


if __name__ == "__main__":
    unittest.main()
