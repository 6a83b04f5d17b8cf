"""What people measure streams with now: one asyncio loop and aiohttp.

usage: client.py URL STREAMS SECONDS; prints one JSON line, times in ms.
"""

import asyncio
import json
import math
import sys
import time

import aiohttp


def quantile(values, p):
    """Nearest rank, as the other clients of this comparison."""
    return sorted(values)[max(math.ceil(p * len(values)), 1) - 1]


async def stream(session, url, body, ttfts, gaps):
    start = time.perf_counter()
    before = None
    async with session.post(url, data=body, headers={"Content-Type": "application/json"}) as response:
        response.raise_for_status()
        async for line in response.content:
            line = line.strip()
            if not line.startswith(b"data:"):
                continue
            data = line[5:].strip()
            if data == b"[DONE]":
                break
            choices = json.loads(data)["choices"]
            if not choices or not choices[0]["text"]:
                continue
            now = time.perf_counter()
            if before is None:
                ttfts.append(1000 * (now - start))
            else:
                gaps.append(1000 * (now - before))
            before = now


async def main(url, streams, seconds):
    body = json.dumps({"model": "m", "prompt": [0] * 1024, "max_tokens": 128, "stream": True}).encode()
    ttfts, gaps = [], []
    end = time.perf_counter() + seconds

    async def slot(session):
        while time.perf_counter() < end:
            await stream(session, url + "/v1/completions", body, ttfts, gaps)

    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=120)) as session:
        await asyncio.gather(*(slot(session) for _ in range(streams)))
    print(json.dumps({
        "ttft_p50": quantile(ttfts, 0.5), "ttft_p99": quantile(ttfts, 0.99),
        "itl_p50": quantile(gaps, 0.5), "itl_p99": quantile(gaps, 0.99),
        "chunks": len(ttfts) + len(gaps), "streams": len(ttfts),
    }))


asyncio.run(main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3])))
