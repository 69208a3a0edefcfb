// The stream of changes, and the view of it.

import { advice, adviceOnChanges, problem, problems } from './connection.js';
import { held } from './collections.js';
import { entryRow, moreRow, partRow, textOf } from './change_rows.js';
import { redraw, toTop } from './list.js';
import { filters, narrow, state } from './state.js';
import { follow, sayChanged } from './streams.js';
import { by, counted, number } from './text.js';

// The most changes that are kept; older ones go.
const MAX_CHANGES = 5000;
// How many past changes are asked for at first.
const PAST = 300;
// The most fields of a change that the list shows.
const MAX_FIELDS = 4;

export const changes = {
  // From the oldest to the newest.
  all: [],
  // The versions up to which all changes came, by resource: from where on a stream resumes.
  versions: new Map(),
  isPaused: false,
};
// What is shown while paused, and how many changes came since.
let frozen = null;
let waiting = 0;
let serial = 0;
// The rows of each change, once they were made.
const made = new WeakMap();
// Whether the stream has said what it follows.
let hasBegun = false;
let stop = null;
// The kinds of the resources that streams have named: collections are polled, and may come later.
export const kinds = new Map();
export const takeKinds = (hello) => hello.resources.forEach((it) => kinds.set(it.id, it.kind));

export const changesView = { label: 'Changes', keepsPlace: true, rows, empty };

// Forgets the changes: the filters select others.
export function forgetChanges() {
  closeChanges();
  changes.all = [];
  changes.versions.clear();
  hasBegun = false;
  frozen = null;
  waiting = 0;
  state.picked = null;
  redraw(true);
}
// Reads on from where the stream was closed, or begins anew.
export function openChanges() {
  if (stop) return;
  stop = follow('changes', path, (batch) => {
    batch.forEach(take);
    const excess = changes.all.length - MAX_CHANGES;
    if (excess > 0) changes.all.splice(0, excess);
    redraw(true);
  }, { refused: (error) => problem('changes', adviceOnChanges(error, filters.kind)) });
}
// The changes stay, without those that follow.
export function closeChanges() {
  if (stop) stop();
  stop = null;
  problem('changes');
}
// Whether changes of a resource come, as far as the filters select them.
export const followsChanges = (it) => stop !== null && changes.versions.has(it.id);

export function setPaused(isPaused) {
  changes.isPaused = isPaused;
  frozen = isPaused ? changes.all.slice() : null;
  waiting = 0;
  const button = by('pause');
  button.setAttribute('aria-pressed', String(isPaused));
  button.textContent = isPaused ? 'Go on' : 'Pause';
  if (!isPaused) toTop();
  redraw(true);
}

// The changes that the text selects, from the oldest to the newest.
export function selected() {
  const text = state.text.toLowerCase();
  const isSelected = (it) => (state.noise || !it.quiet) && (!text || hayOf(it).includes(text));
  return (frozen || changes.all).filter(isSelected);
}

// A change as the rows show it.
export function prepared(line) {
  serial += 1;
  const diff = line.diff || { changes: [], more: 0, folded: 0 };
  const quiet = line.verb === 'updated' && diff.changes.length === 0 && diff.more === 0;
  const kind = kindOf(line.resource);
  return { ...line, key: `c${serial}`, diff, kind, quiet, hay: null };
}

// Made with the first search: few changes are looked for.
function hayOf(it) {
  it.hay = it.hay || textOf(it).toLowerCase();
  return it.hay;
}

function path() {
  const query = new URLSearchParams();
  if (filters.kind) query.append('resource', filters.kind);
  if (filters.namespace) query.append('namespace', filters.namespace);
  if (filters.labels) query.append('labelSelector', filters.labels);
  for (const [id, version] of changes.versions) query.append('after', `${id}@${version}`);
  if (!changes.versions.size) {
    // What came before the first versions comes again.
    changes.all = [];
    query.append('last', PAST);
  }
  return `ui/changes?${query}`;
}

function take(line) {
  switch (line.type) {
    case 'change':
    case 'gap':
      changes.all.push(prepared(line));
      if (line.type === 'change') sayChanged(line.resource, line);
      if (changes.isPaused && !line.past) waiting += 1;
      break;
    case 'at':
      hasBegun = true;
      for (const [id, version] of Object.entries(line.versions)) changes.versions.set(id, version);
      break;
    case 'hello':
      takeKinds(line);
      break;
    case 'refused':
      changes.versions.delete(line.resource);
      problem('changes', advice(403, line.message));
      break;
    default:
  }
}

function kindOf(resource) {
  const collection = held.get(resource);
  return collection ? collection.kind : kinds.get(resource) || String(resource).split('.')[0];
}

// The rows of the view, the newest entry first.
function rows() {
  const entries = selected().reverse();
  const inline = !narrow.matches;
  const all = [];
  entries.forEach((it, at) => {
    let own = made.get(it);
    if (!own || own[0].made !== inline) {
      own = rowsOf(it, inline);
      made.set(it, own);
    }
    own[0].at = at;
    all.push(...own);
  });
  const since = changes.isPaused && waiting ? `, ${number(waiting)} more since the pause` : '';
  by('count').textContent = `${counted(entries.length, 'change', 'changes')}${since}`;
  return { rows: all, entries: entries.length };
}

// An entry, and below it the fields that did not fit.
function rowsOf(it, inline) {
  const row = (key, make) => ({ key, of: it, made: inline, make });
  const all = [row(it.key, () => entryRow(it, inline, MAX_FIELDS))];
  const fields = it.diff.changes;
  const seen = Math.min(fields.length, MAX_FIELDS);
  for (let field = inline ? 1 : 0; field < seen; field += 1) {
    all.push(row(`${it.key}.${field}`, () => partRow(it, fields[field], inline)));
  }
  const more = fields.length - seen + it.diff.more;
  if (more > 0) all.push(row(`${it.key}.more`, () => moreRow(more, inline)));
  return all;
}

function empty() {
  // The notice says why.
  if (problems.has('changes')) return ['No changes can be followed', ''];
  if (changes.all.length && state.text) return ['No change fits', 'Esc clears the text.'];
  if (changes.all.length && !state.noise) {
    const text = 'Only noise so far: heartbeats, versions. Press n to see it.';
    return ['No change fits', text];
  }
  if (hasBegun && !changes.versions.size) {
    return ['Nothing is held that you may watch', 'Fill in a kind; if you may watch single '
      + 'namespaces only, the namespace first.'];
  }
  return ['Quiet so far', 'Changes appear here as they happen, of everything that is held and that '
    + 'you may watch.'];
}
