"""An MCP server over Streamable HTTP, with its own login, that behaves as it is told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any
from urllib.parse import parse_qs


class Site:
    """What the server does, and what it saw."""

    def __init__(self, mode: str) -> None:
        self.mode = mode
        self.url = ""
        self.token = "token-1"
        self.expires = 3600
        self.seen: list[tuple[str, str, dict[str, str]]] = []
        self.refreshed = 0
        self.registered: dict[str, Any] = {}
        self.release = Event()

    def paths(self) -> list[str]:
        """The paths asked for so far."""
        return [path for _, path, _ in self.seen]


class Handler(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"
    site: Site

    def log_message(self, *args: Any) -> None:
        """Nothing is printed."""

    def answer(self, value: Any, status: int = 200, **headers: str) -> None:
        """JSON."""
        body = json.dumps(value).encode() if value is not None else b""
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        for name, text in headers.items():
            self.send_header(name.replace("_", "-"), text)
        self.end_headers()
        self.wfile.write(body)

    def body(self) -> bytes:
        """What was sent."""
        return self.rfile.read(int(self.headers.get("content-length") or 0))

    def do_GET(self) -> None:
        """The documents of the login; no stream of our own."""
        site, path = self.site, self.path.partition("?")[0]
        site.seen.append(("GET", self.path, dict(self.headers)))
        if path.startswith("/.well-known/oauth-protected-resource"):
            resource = {"resource": f"{site.url}/mcp", "authorization_servers": [site.url]}
            self.answer(resource)
        elif path.startswith("/.well-known/oauth-authorization-server"):
            ends = {n: f"{site.url}/oauth/{n}" for n in ("authorize", "token", "register")}
            self.answer(
                {
                    "issuer": site.url,
                    "authorization_endpoint": ends["authorize"],
                    "token_endpoint": ends["token"],
                    "registration_endpoint": ends["register"],
                    "response_types_supported": ["code"],
                    "code_challenge_methods_supported": ["S256"],
                }
            )
        elif path == "/oauth/authorize":  # a user who is logged in here already
            asked = {k: v[0] for k, v in parse_qs(self.path.partition("?")[2]).items()}
            back = f"{asked['redirect_uri']}?code=c1&state={asked['state']}"
            self.answer(None, 302, location=back)
        else:
            self.answer({}, 405)

    def do_DELETE(self) -> None:
        """The end of a session."""
        self.answer(None)

    def do_POST(self) -> None:
        """Messages, and the two steps of the login that are posted."""
        site = self.site
        raw = self.body()
        site.seen.append(("POST", self.path, dict(self.headers)))
        if self.path == "/oauth/register":
            site.registered = {**json.loads(raw), "client_id": "c1"}
            self.answer(site.registered, 201)
        elif self.path == "/oauth/token":
            self._token({k: v[0] for k, v in parse_qs(raw.decode()).items()})
        elif self.path != "/mcp":
            self.answer({}, 404)
        else:
            self._mcp(json.loads(raw))

    def _token(self, asked: dict[str, str]) -> None:
        site = self.site
        if asked["grant_type"] == "refresh_token":
            site.refreshed += 1
            site.token = f"token-{site.refreshed + 1}"
        told = {"access_token": site.token, "token_type": "Bearer", "refresh_token": "r1"}
        self.answer({**told, "expires_in": site.expires})

    def _mcp(self, ask: dict[str, Any]) -> None:
        site = self.site
        if site.mode == "login" and self.headers.get("authorization") != f"Bearer {site.token}":
            self.answer({}, 401, www_authenticate="Bearer")
        elif site.mode == "points":
            elsewhere = 'Bearer resource_metadata="https://internal.example/secret"'
            self.answer({}, 401, www_authenticate=elsewhere)
        elif site.mode == "redirect":
            self.answer(None, 307, location="http://127.0.0.1:9/mcp")
        elif site.mode == "hang":
            site.release.wait(200)
        elif site.mode == "garbage":
            self.answer(["what?"])
        elif "id" not in ask:
            self.answer(None, 202)
        else:
            self._result(ask)

    def _result(self, ask: dict[str, Any]) -> None:
        method = ask["method"]
        about = {"protocolVersion": "2025-06-18", "serverInfo": {"name": "h", "version": "1"}}
        results = {
            "initialize": {**about, "capabilities": {"tools": {}}},
            "tools/list": {"tools": [{"name": "say", "inputSchema": {"type": "object"}}, *TASKS]},
            "tools/call": {"content": [{"type": "text", "text": "said"}]},
        }
        if method not in results:
            error = {"code": -32601, "message": "Method not found"}
            self.answer({"jsonrpc": "2.0", "id": ask["id"], "error": error})
        elif method == "tools/call" and self.site.mode == "huge":
            text = {"content": [{"type": "text", "text": "h" * 9_000_000}]}
            self.answer({"jsonrpc": "2.0", "id": ask["id"], "result": text})
        else:
            self.answer({"jsonrpc": "2.0", "id": ask["id"], "result": results[method]})


TASKS = [
    {"name": f"task_{how}", "inputSchema": {"type": "object"}, "execution": {"taskSupport": how}}
    for how in ("required", "optional", "forbidden")
]


class Server(ThreadingHTTPServer):
    """Says nothing when a client has gone."""

    daemon_threads = True

    def handle_error(self, *args: Any) -> None:
        """See `socketserver`."""


@contextmanager
def site(mode: str = "ok") -> Iterator[Site]:
    """The server, on a port of this machine."""
    made = Site(mode)
    handler = type("Bound", (Handler,), {"site": made})
    with Server(("127.0.0.1", 0), handler) as server:
        made.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield made
        finally:
            made.release.set()
            server.shutdown()
            thread.join()
