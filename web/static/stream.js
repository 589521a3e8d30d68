// One event stream of one chat, kept alive.
//
// The browser's EventSource reconnects by itself with Last-Event-ID as long as the server is merely
// away. When the server refuses (the chat is gone, the token is old, it is full), EventSource gives
// up: then `probe` finds out why, and either ends the stream or lets it be opened again, later.

import { eventsUrl, readSession } from "./api.js";

const WAITS = [500, 1000, 2000, 4000, 8000]; // milliseconds before each new attempt; the last repeats

/**
 * Follows a chat. `on.event(event)` for each event, `on.state("live" | "lost")` as the connection
 * changes, `on.refused(failure)` when it makes no sense to go on. `seq()` is the last event known.
 * Returns {close, wake}.
 */
export function follow(id, seq, on) {
  let source = null;
  let timer = 0;
  let tries = 0;
  let closed = false;

  function open() {
    clearTimeout(timer);
    timer = 0;
    source?.close();
    source = new EventSource(eventsUrl(id, seq()));
    source.onopen = () => {
      tries = 0;
      on.state("live");
    };
    source.onmessage = (message) => on.event(JSON.parse(message.data));
    source.onerror = () => {
      if (closed) return;
      on.state("lost");
      if (source.readyState === EventSource.CLOSED) probe();
    };
  }

  async function probe() {
    try {
      await readSession(id);
    } catch (failure) {
      if (closed) return;
      if (failure.status === 404 || failure.status === 401 || failure.status === 403) {
        close();
        on.refused(failure);
        return;
      }
    }
    if (closed || timer) return;
    timer = setTimeout(open, WAITS[Math.min(tries++, WAITS.length - 1)]);
  }

  function close() {
    closed = true;
    clearTimeout(timer);
    source?.close();
  }

  // The network is back or the page is looked at again: do not sit out the waiting time.
  function wake() {
    if (!closed && source.readyState !== EventSource.OPEN) open();
  }

  open();
  return { close, wake };
}
