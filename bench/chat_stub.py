"""An endpoint that replies "A" after a while, however many ask at once; prints its port and serves until it ends."""

from __future__ import annotations

import asyncio
import json
import sys

REPLY = json.dumps(
    {
        "object": "chat.completion",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "A"}}],
        "usage": {"prompt_tokens": 60, "completion_tokens": 1, "total_tokens": 61},
    }
).encode()
HEAD = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(REPLY)}\r\n\r\n".encode()


async def serve(after: float) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                lines = [line.split(b":", 1) for line in head.split(b"\r\n")[1:] if b":" in line]
                length = next((int(value) for name, value in lines if name.lower() == b"content-length"), 0)
                await reader.readexactly(length)
                await asyncio.sleep(after)
                writer.write(HEAD + REPLY)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(float(sys.argv[1])))
