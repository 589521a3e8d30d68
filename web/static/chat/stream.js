// One event stream of one chat, kept alive.
//
// The browser's EventSource reconnects by itself with Last-Event-ID as long as the server is merely
// away. When the server refuses (the chat is gone, the token is old, it is full), EventSource gives
// up: then `probe` finds out why, and either ends the stream or lets it be opened again, later.
//
// A browser keeps six connections to a server for all tabs together, and a stream holds one of them.
// So only a few tabs stream; the others look every now and then, and a tab that nobody sees not at all.

import { eventsUrl, readSession } from "../lib/api.js";
import { known } from "../locales/index.js";

const WAITS = [500, 1000, 2000, 4000, 8000]; // milliseconds before each new attempt; the last repeats
const STREAMS = 3; // tabs that may hold a connection at the same time
const QUIET = 400; // milliseconds without an event after which a look is over
const AGAIN = 1500; // milliseconds between looks

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
  let release = null; // gives the connection back
  let opening = false;

  // A tab that comes back is told so twice, as seen and as focused: who opens already goes on alone.
  async function open() {
    clearTimeout(timer);
    timer = 0;
    if (opening) return;
    source?.close();
    source = null;
    opening = true;
    release ??= await slot();
    await known(); // an event may tell of an error
    opening = false;
    if (closed || document.hidden) return rest();
    const own = (source = new EventSource(eventsUrl(id, seq())));
    own.onopen = () => {
      tries = 0;
      on.state("live");
      look(own);
    };
    own.onmessage = message => {
      if (own !== source) return;
      on.event(JSON.parse(message.data));
      look(own);
    };
    own.onerror = () => {
      if (closed || own !== source) return;
      on.state("lost");
      if (own.readyState === EventSource.CLOSED) probe();
    };
  }

  // Without a connection of its own a tab takes what there is and comes back.
  function look(own) {
    if (release) return;
    clearTimeout(timer);
    timer = setTimeout(() => {
      own.close();
      timer = setTimeout(open, AGAIN);
    }, QUIET);
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

  function rest() {
    clearTimeout(timer);
    source?.close();
    source = null;
    release?.();
    release = null;
  }

  function close() {
    closed = true;
    document.removeEventListener("visibilitychange", seen);
    rest();
  }

  // The network is back or the page is looked at again: do not sit out the waiting time.
  function wake() {
    if (!closed && source?.readyState !== EventSource.OPEN) open();
  }

  function seen() {
    if (document.hidden) rest();
    else wake();
  }

  document.addEventListener("visibilitychange", seen);
  open();
  return { close, wake };
}

/** The right to hold a connection, as a function that gives it back; null when all are taken. */
async function slot() {
  if (!navigator.locks) return () => {}; // over plain HTTP from another machine there are none
  for (let i = 0; i < STREAMS; i++) {
    const release = await new Promise(resolve => {
      const hold = lock => lock && new Promise(done => resolve(done));
      navigator.locks.request(`searchloop.stream.${i}`, { ifAvailable: true }, hold).then(() => resolve(null));
    });
    if (release) return release;
  }
  return null;
}
