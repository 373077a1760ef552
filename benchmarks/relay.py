"""A relay to a local port that passes every answer on a little later: a slow network."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def relay(port: int, delay_s: float, slow: threading.Event) -> Iterator[int]:
    """The port of a relay to another one, whose answers come so much later once ``slow`` is set."""
    loop, ready = asyncio.new_event_loop(), threading.Event()
    ports: list[int] = []

    async def passed(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, late: bool
    ) -> None:
        with suppress(OSError):
            while piece := await reader.read(65_536):
                await asyncio.sleep(delay_s if late and slow.is_set() else 0.0)
                writer.write(piece)
                await writer.drain()
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        theirs = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(passed(reader, theirs[1], False), passed(theirs[0], writer, True))

    async def start() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        ports.append(server.sockets[0].getsockname()[1])
        ready.set()

    def run() -> None:
        asyncio.set_event_loop(loop)
        loop.create_task(start())
        loop.run_forever()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    ready.wait()
    try:
        yield ports[0]
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
