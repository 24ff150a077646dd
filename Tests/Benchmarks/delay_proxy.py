"""A TCP proxy for benchmarks, which delays every byte in both directions.

    delay_proxy.py PORT MILLISECONDS

Prints its port, and ends with its standard input.
"""

import asyncio
import os
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "Fixtures"))

import peer


async def forward(reader, writer, delay):
    """What was read waits in a queue until its time has come."""
    loop = asyncio.get_running_loop()
    queue = asyncio.Queue()

    async def send():
        while True:
            moment, data = await queue.get()
            await asyncio.sleep(moment - loop.time())
            if not data:
                break
            writer.write(data)
            await writer.drain()
        writer.close()

    sender = asyncio.create_task(send())
    data = True
    while data:
        try:
            data = await reader.read(1 << 18)
        except ConnectionError:
            data = b""
        queue.put_nowait((loop.time() + delay, data))
    await asyncio.gather(sender, return_exceptions=True)


async def main():
    port, delay = int(sys.argv[1]), float(sys.argv[2]) / 1000

    async def serve(reader, writer):
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(forward(reader, far_writer, delay), forward(far_reader, writer, delay))

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    await asyncio.get_running_loop().run_in_executor(None, peer.announce, server.sockets[0].getsockname()[1])


asyncio.run(main())
