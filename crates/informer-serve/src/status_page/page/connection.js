// Requests, and what is said when they fail: the notice, and the light at the top.

import { by, plain, sentence, set } from './text.js';

// What is wrong, by the part of the page that has the problem: `{ message, kind }`.
export const problems = new Map();
const watchers = [];
// Calls back when there is another problem, or one less.
export const onProblem = (watcher) => watchers.push(watcher);

// Says what is wrong with a part of the page; nothing, if there is no message.
export function problem(of, message, kind) {
  if (message) problems.set(of, { message, kind: kind || 'warn' }); else problems.delete(of);
  watchers.forEach((it) => it());
  const first = problems.get('poll') || problems.get('changes') || problems.get('objects');
  const notice = by('notice');
  notice.hidden = !first;
  if (first) {
    set(notice, plain(first.message));
    notice.dataset.kind = first.kind;
  }
}

// The light at the top: 'live' or 'lost'.
export function connection(now, text) {
  const node = by('connection');
  if (node.dataset.state !== now) node.dataset.state = now;
  document.body.classList.toggle('lost', now === 'lost');
  set(by('connection-text'), text);
}

// A refused request; the status is 0 where nothing answers.
export class Refused extends Error {
  constructor(status, message) { super(message); this.status = status; }
}
export const statusOf = (error) => (error instanceof Refused ? error.status : 0);

// What to do about a refusal.
export function advice(status, message) {
  switch (status) {
    case 0:
      return 'The endpoint does not answer: is `kubectl informer serve`, or the `kubectl proxy` in '
        + 'between, still running? This page goes on by itself as soon as it is there.';
    case 401:
      return 'Your credentials are not accepted (any more). Through `kubectl proxy`: renew your '
        + 'login, and start it again.';
    case 403:
      return `You may not see this: ${sentence(message)} Choose a kind and a namespace that you `
        + 'may watch.';
    case 429: return `${sentence(message)} Close other pages and watches, or wait a moment.`;
    default: return message;
  }
}
export const adviceOn = (error) => advice(statusOf(error), error.message);
// The same for changes of a resource: whoever may not read the path of a name does not learn more.
export function adviceOnChanges(error, name) {
  const isPath = statusOf(error) === 403 && error.message.startsWith('forbidden: User');
  if (!isPath || !name) return adviceOn(error);
  return `This endpoint does not hold ${name}, and knows no changes of it. Objects may list it.`;
}

// An answer that is one; all others are thrown as `Refused`. Paths are relative to the page, which
// may be served below a prefix.
export async function ask(path, options) {
  let response;
  try {
    const always = { cache: 'no-store', credentials: 'omit', redirect: 'error' };
    response = await fetch(path, { ...always, ...options });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new Refused(0, 'no answer');
  }
  if (response.ok) return response;
  let status = null;
  try { status = await response.json(); } catch { /* The endpoint always sends a Status. */ }
  // A proxy that does not reach the endpoint.
  if (!status && response.status >= 500) throw new Refused(0, 'no answer');
  throw new Refused(response.status, (status && status.message) || response.statusText);
}

// Resolves after a time in milliseconds, or when the signal is given.
export const pause = (time, signal) => new Promise((resolve) => {
  if (signal && signal.aborted) { resolve(); return; }
  let timer = null;
  const done = () => {
    clearTimeout(timer);
    if (signal) signal.removeEventListener('abort', done);
    resolve();
  };
  timer = setTimeout(done, time);
  if (signal) signal.addEventListener('abort', done);
});
