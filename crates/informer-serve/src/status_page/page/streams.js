// Streams of lines of JSON that are opened again until they are stopped.
//
// A tab that is hidden closes them: browsers open six connections to an address over HTTP/1.1, for
// all their tabs together.

import { Refused, adviceOn, ask, pause, problem } from './connection.js';

// How long a stream may be silent before it counts as lost, in ms. Changes have a line every 5 s.
const SILENCE = 15000;
// Pauses before a stream is opened again, in ms: the first, and the longest, which is the first one
// after refusals that time alone does not mend.
const SHORTEST = 250;
const LONGEST = 5000;
const LASTING = [400, 403, 404, 410];
// How long a tab is hidden before it rests, in ms: whoever looks at another for a moment comes back
// to a stream that has gone on.
const REST = 10000;

// Calls back with each object of which a stream brings a change: the id of its resource, its
// namespace and its name.
let changed = () => {};
export const onChanged = (callback) => { changed = callback; };
export const sayChanged = (resource, of) => changed(resource, of.namespace || '', of.name);

// The lines of an answer, in the batches in which they come.
export async function* lines(response) {
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let rest = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const parts = (rest + decoder.decode(value, { stream: true })).split('\n');
    rest = parts.pop();
    yield parts.filter((it) => it).map((it) => JSON.parse(it));
  }
}

// Reads a stream for a part of the page: `path()` says from where on, `take(batch)` takes lines.
// Options are those of `fetch`, and `silence` (ms) and `refused(error)`. Returns what stops it.
export function follow(of, path, take, options = {}) {
  const stop = new AbortController();
  const wait = { now: SHORTEST };
  (async () => {
    while (!stop.signal.aborted) {
      if (isResting) { await awake(stop.signal); continue; }
      try {
        await readOnce(of, path(), take, options, stop.signal, wait);
      } catch (error) {
        if (stop.signal.aborted) return;
        tell(of, error, options, wait);
      }
      // It was closed by this tab, which comes back at once.
      if (isResting) continue;
      await pause(wait.now * (0.75 + Math.random() / 2), stop.signal);
      wait.now = Math.min(wait.now * 2, LONGEST);
    }
  })();
  return () => stop.abort();
}

// Reads until the stream ends, is silent for too long, or is stopped.
async function readOnce(of, path, take, options, stopped, wait) {
  const once = new AbortController();
  const end = () => once.abort();
  stopped.addEventListener('abort', end);
  resting.addEventListener('change', end);
  let silence = setTimeout(end, SILENCE);
  const heard = () => {
    clearTimeout(silence);
    silence = setTimeout(end, options.silence || SILENCE);
  };
  try {
    const response = await ask(path, { signal: once.signal, ...options });
    problem(of);
    heard();
    for await (const batch of lines(response)) {
      heard();
      wait.now = SHORTEST;
      if (stopped.aborted) return;
      take(batch);
    }
  } finally {
    clearTimeout(silence);
    stopped.removeEventListener('abort', end);
    resting.removeEventListener('change', end);
    once.abort();
  }
}

function tell(of, error, options, wait) {
  if (error instanceof Refused) {
    problem(of, adviceOn(error), error.status ? 'warn' : 'bad');
    if (LASTING.includes(error.status)) {
      if (options.refused) options.refused(error);
      wait.now = Math.max(wait.now, LONGEST);
    }
  } else if (error.name !== 'AbortError' && !(error instanceof TypeError)) {
    problem(of, 'The endpoint sent what this page cannot read: reload the page.', 'bad');
  }
}

// Whether the tab has been hidden for a while. Each change is an event of `resting`.
const resting = new EventTarget();
let isResting = document.hidden;
let restSoon = null;
function rest(now) {
  if (isResting === now) return;
  isResting = now;
  resting.dispatchEvent(new Event('change'));
}
document.addEventListener('visibilitychange', () => {
  clearTimeout(restSoon);
  if (document.hidden) restSoon = setTimeout(() => rest(true), REST); else rest(false);
});

// Resolves when the tab does not rest, or the signal is given.
export function awake(signal) {
  if (!isResting || (signal && signal.aborted)) return Promise.resolve();
  return new Promise((resolve) => {
    const done = () => {
      resting.removeEventListener('change', done);
      if (signal) signal.removeEventListener('abort', done);
      resolve();
    };
    resting.addEventListener('change', done);
    if (signal) signal.addEventListener('abort', done);
  });
}
