"""Merging in processes of their own beside merging in the process: a realistic mail, in batches of several sizes.

    python -m bench.pooled

Both merge the same contexts one batch after the other, as a pump does that waits for each. What the pool loses is the
way there and back; that other work goes on meanwhile, it does not show here.
"""

import time

from bench.figure import Figure, Round, Run, figure, table
from bench.merging import DATA, RECIPIENT, mail
from clarion.adapters.renderers import open_renderer
from clarion.adapters.renderers.pool import PoolRenderer
from clarion.cli.long_running import run_service
from clarion.domain.content import EmailContent
from clarion.domain.identity import Channel
from clarion.ports.renderer import Bundle, Merge, Renderer

SIZES = (1, 20, 100)
ROUNDS = 9
CONTEXTS = 400
"""Merged in each round by each."""


def contexts(count: int) -> list[Merge]:
    """Make contexts that differ."""
    return [
        Merge({**DATA, "note": f"Please leave it with neighbour {place} <&>"}, recipient=dict(RECIPIENT))
        for place in range(count)
    ]


async def rate(renderer: Renderer, bundle: Bundle, *, size: int) -> float:
    """Merge the contexts in batches of a size, and return how many a second."""
    batches = [contexts(size) for _ in range(CONTEXTS // size)]
    started = time.perf_counter()
    for batch in batches:
        made = await renderer.render(bundle, Channel.EMAIL, batch, tenant_id="bench", seconds_max=60)
        assert all(isinstance(one, EmailContent) for one in made), made
    return len(batches) * size / (time.perf_counter() - started)


async def figures(*, fsync_ms: float = 0.0) -> list[Figure]:
    """Measure every size; the pool and the process take turns."""
    local, pool = open_renderer(), PoolRenderer(processes=1)
    bundle = mail(local)
    made: list[Figure] = []
    try:
        for renderer in (local, pool):
            await rate(renderer, bundle, size=1)
        for size in SIZES:
            rounds: list[Round] = []
            for _ in range(ROUNDS):
                one = {"ours": await rate(pool, bundle, size=size)}
                rounds.append(one | {"limit": await rate(local, bundle, size=size)})
            made.append(
                figure(
                    f"merge apart, {size} at once",
                    rounds,
                    means="a mail of 20 variables and 10 rows, merged in a process of its own",
                    unit="mails/s",
                    limit="merged in the process that asks",
                    fsync_ms=fsync_ms,
                )
            )
    finally:
        await pool.close()
    return made


async def _run() -> Run:
    return Run(machine="", messages=CONTEXTS, figures=await figures())


if __name__ == "__main__":
    print(table(run_service(_run())))
