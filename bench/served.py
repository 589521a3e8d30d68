"""Our whole web server, with its followers in a process of their own.

`serve` runs as it does for a user, in this process, so that the CPU measured is the server's: from
the provider's bytes to what a browser's event stream gets, with the log written. The clients are
`bench.follower`, on the other core, told over its standard input when to begin.
"""

from __future__ import annotations

import asyncio
import io
import json
import subprocess
import sys
import threading
import time
from typing import Any

from bench.clock import Sample, pinned, report, take
from bench.scenarios import MODEL, Outcome, Scenario
from searchloop.compose import Services, open_services
from searchloop.web.serve import WebServer, serve


class Served:
    """One scenario against a server that runs."""

    def __init__(
        self, scenario: Scenario, house: Services, serving: WebServer, core: int | None
    ) -> None:
        self._scenario = scenario
        self._log = house.log
        self._loop = asyncio.get_running_loop()
        self._sessions = [
            house.log.create_session(model=f"openai:{MODEL}").id for _ in range(scenario.sessions)
        ]
        order = {
            "scenario": scenario.as_dict(),
            "port": serving.access.port,
            "token": serving.access.token,
            "sessions": self._sessions,
        }
        command = [sys.executable, "-m", "bench.follower", json.dumps(order)]
        with pinned(core):
            self._client = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )

    def measure(self) -> list[Sample]:
        """All samples; waits for the clients before each."""
        self._hear()
        try:
            return take(self._scenario, self._run, self._outcome)
        finally:
            self._client.kill()
            self._client.communicate()

    def _run(self) -> Any:
        assert self._client.stdin is not None
        self._client.stdin.write("go\n")
        self._client.stdin.flush()
        if self._scenario.kind == "crowd":
            asyncio.run_coroutine_threadsafe(self._tell(), self._loop).result()
        return self._hear()

    async def _tell(self) -> None:
        """Events at a steady pace in every session, as runs write them; each names its due time."""
        began = time.time()
        for number in range(self._scenario.deltas):
            due = began + number * self._scenario.seconds
            await asyncio.sleep(due - time.time())
            for session in self._sessions:
                self._log.append(session, [("text_delta", {"text": f"{due:.6f} "})])

    def _outcome(self, told: Any) -> Outcome:
        self._hear()
        return Outcome(**told)

    def _hear(self) -> Any:
        assert self._client.stdout is not None
        return json.loads(self._client.stdout.readline())


def main() -> None:
    """Argument: {"scenario": ..., "core": ...} as JSON. Prints the samples as JSON."""
    order = json.loads(sys.argv[1])
    scenario = Scenario(**order["scenario"])
    house = open_services()
    done: list[Any] = []

    def started(serving: WebServer) -> None:
        served = Served(scenario, house, serving, order["core"])

        def work() -> None:
            try:
                done.append(report(served.measure()))
            finally:
                serving.stop()

        threading.Thread(target=work).start()

    serve(house, port=0, out=io.StringIO(), on_start=started)
    if not done:
        raise SystemExit(1)
    print(json.dumps(done[0]))


if __name__ == "__main__":
    main()
