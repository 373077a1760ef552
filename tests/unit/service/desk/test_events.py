"""Server-sent events reach every listener once, and slow ones let go."""

import asyncio
import json

from ideal_dispatch.service.desk.events import Hub


async def take(stream: object, count: int) -> list[bytes]:
    found = []
    async for message in stream:  # type: ignore[attr-defined]
        found.append(message)
        if len(found) == count:
            break
    return found


def test_every_listener_hears_every_event_once() -> None:
    async def story() -> None:
        hub = Hub()
        listening = [asyncio.create_task(take(hub.listen(), 3)) for _ in range(2)]
        await asyncio.sleep(0.01)
        assert hub.listeners == 2
        hub.publish("units", [1], "a")
        hub.publish("units", [1], "a")  # the same, told by another way
        hub.publish("response", {"text": "line\nbreak é"}, "b")
        for heard in await asyncio.gather(*listening):
            assert heard[0].startswith(b"retry:")
            assert heard[1] == b"event: units\ndata: [1]\n\n"
            lines = heard[2].decode().split("\n")
            assert lines[0] == "event: response"
            assert json.loads(lines[1].removeprefix("data: ")) == {"text": "line\nbreak é"}

    asyncio.run(story())


def test_silence_is_broken_by_a_ping() -> None:
    async def story() -> None:
        hub = Hub()
        heard = await take(hub.listen(ping_s=0.01), 3)
        assert heard[1:] == [b": ping\n\n"] * 2

    asyncio.run(story())


def test_who_does_not_read_is_let_go() -> None:
    async def story() -> None:
        hub = Hub()
        stream = hub.listen()
        await anext(stream)
        for number in range(500):
            hub.publish("units", number)
        assert hub.listeners == 0
        assert [message async for message in stream] == []

    asyncio.run(story())


def test_closing_ends_all_streams() -> None:
    async def story() -> None:
        hub = Hub(most=1)
        stream = hub.listen()
        await anext(stream)
        assert hub.full
        hub.close()
        assert [message async for message in stream] == []
        assert hub.full  # nobody new

    asyncio.run(story())
