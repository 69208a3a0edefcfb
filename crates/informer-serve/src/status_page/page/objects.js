// The view of the objects of one kind: a table that is listed, and then watched.

import { held, isChosen } from './collections.js';
import { Refused, adviceOn, ask, pause, problem } from './connection.js';
import { discovered } from './discovery.js';
import { redraw, remake } from './list.js';
import { filters, narrow, state } from './state.js';
import { follow, lines, sayChanged } from './streams.js';
import { aside, bdi, by, counted, el, full, plain, span } from './text.js';

const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json';
// Objects of one page of the list.
const LIMIT = 500;
// How long a watch goes on (seconds), and how long it may be silent (ms): bookmarks come each
// minute.
const LIFETIME = 300;
const SILENCE = 90000;
// Pauses before what failed, and what has expired, is listed again, in ms.
const FAILED_AGAIN = 5000;
const EXPIRED_AGAIN = 1000;
// Interval at which ages are shown anew, in ms.
const AGES = 10000;
// Columns beside the name, at a desk and at a phone.
const MOST_COLUMNS = 7;
const FEW_COLUMNS = 2;

export const objectsView = { label: 'Objects', keepsPlace: false, rows, empty };

let resource = null;
let columns = [];
// Items by namespace and name, and in that order.
const items = new Map();
let sorted = [];
// Whether there is more or less to sort, or the head is another one.
let isDirty = false;
let isLoading = false;
let isWatched = false;
let failed = '';
let stop = null;

// Begins anew, with what the filters select.
export function openObjects() {
  closeObjects();
  failed = '';
  begin();
}
function begin() {
  if (stop) stop();
  if (!filters.kind) { redraw(true); return; }
  const stopping = new AbortController();
  stop = () => stopping.abort();
  resource = null;
  columns = [];
  items.clear();
  sorted = [];
  isDirty = true;
  isLoading = true;
  isWatched = false;
  redraw(true);
  const { signal } = stopping;
  load(signal).catch((error) => {
    if (signal.aborted) return;
    isLoading = false;
    failed = adviceOn(error);
    problem('objects', failed);
    redraw(true);
    openAgain(FAILED_AGAIN, signal);
  });
}
export function closeObjects() {
  if (stop) stop();
  stop = null;
  isWatched = false;
  problem('objects');
}
// Whether a resource is the one that is watched, as far as the filters select its objects.
export const watches = (it) => isWatched && resource.id === it.id;
// The width has changed.
export function resizeObjects() {
  isDirty = true;
}

// The path of a resource, or of one object, in the API.
export function apiPath(it, namespace, name) {
  const group = it.group ? `apis/${it.group}/${it.version}` : `api/${it.version}`;
  const scope = it.namespaced && namespace ? `/namespaces/${encodeURIComponent(namespace)}` : '';
  return `${group}${scope}/${it.plural}${name ? `/${encodeURIComponent(name)}` : ''}`;
}

// The resource that is meant by the kind: one that is held, or what discovery has: the endpoint
// forwards what it does not hold. Servers before 1.26 have no discovery in one document: then what
// the endpoint makes of the name.
async function resolve(kind, signal) {
  for (const it of held.values()) if (isChosen(it)) return it;
  const found = await discovered(kind, signal);
  if (found) return found;
  const query = new URLSearchParams({ resource: kind, follow: 'false' });
  if (filters.namespace) query.append('namespace', filters.namespace);
  const response = await ask(`ui/changes?${query}`, { signal });
  for await (const batch of lines(response)) {
    for (const line of batch) if (line.type === 'hello') return line.resources[0];
  }
  throw new Refused(404, `There is no ${kind}.`);
}

async function load(signal) {
  const found = await resolve(filters.kind, signal);
  resource = found;
  const base = apiPath(found, filters.namespace);
  const labels = filters.labels ? `&labelSelector=${encodeURIComponent(filters.labels)}` : '';
  const headers = { Accept: TABLE };
  let [next, version] = ['', ''];
  do {
    const page = next ? `&continue=${encodeURIComponent(next)}` : '';
    const path = `${base}?limit=${LIMIT}${labels}${page}`;
    const table = await (await ask(path, { signal, headers })).json();
    if (signal.aborted) return;
    takeColumns(table.columnDefinitions);
    table.rows.forEach(put);
    next = table.metadata.continue || '';
    version = table.metadata.resourceVersion;
    isDirty = true;
    redraw(true);
  } while (next);
  isLoading = false;
  failed = '';
  problem('objects');
  redraw(true);
  watch(`${base}?watch=1&allowWatchBookmarks=true&timeoutSeconds=${LIFETIME}${labels}`, version,
    headers, signal);
}

function watch(base, listed, headers, signal) {
  let version = listed;
  // Listed again, though never at once. Without the right to watch, what was listed stays.
  const again = () => {
    isWatched = false;
    end();
    openAgain(EXPIRED_AGAIN, signal);
  };
  const refused = (error) => {
    if (error.status === 410) { again(); return; }
    isWatched = false;
    end();
  };
  const take = (batch) => {
    for (const event of batch) {
      if (event.type === 'ERROR') { again(); return; }
      takeColumns(event.object.columnDefinitions);
      for (const row of event.object.rows || []) {
        version = row.object.metadata.resourceVersion;
        if (event.type === 'BOOKMARK') continue;
        if (event.type === 'DELETED') remove(row); else put(row);
        sayChanged(resource.id, row.object.metadata);
      }
    }
    redraw(true);
  };
  const path = () => `${base}&resourceVersion=${version}`;
  isWatched = true;
  const end = follow('objects', path, take, { headers, silence: SILENCE, refused });
  signal.addEventListener('abort', end);
}

function openAgain(time, signal) {
  pause(time, signal).then(() => { if (!signal.aborted) begin(); });
}

function takeColumns(definitions) {
  if (!definitions || !definitions.length) return;
  const all = definitions.map(({ name, priority }, cell) => ({ name, priority, cell }));
  columns = all.filter((it) => it.priority === 0 && it.name !== 'Name');
}

// One object, and its row in the list.
class Item {
  constructor(key, metadata, cells) {
    this.key = key;
    this.namespace = metadata.namespace || '';
    this.name = metadata.name;
    this.born = metadata.creationTimestamp;
    this.made = metadata.resourceVersion;
    this.cells = cells;
    this.resource = resource;
    // Among all, and among those that the text selects.
    this.place = -1;
    this.at = -1;
    this.text = null;
  }
  get of() { return this; }
  get hay() {
    this.text = this.text || `${full(this)} ${this.cells.join(' ')}`.toLowerCase();
    return this.text;
  }
  make() { return rowOf(this); }
}
const keyOf = (row) => `${row.object.metadata.namespace || ''}/${row.object.metadata.name}`;

function put(row) {
  const key = keyOf(row);
  const before = items.get(key);
  const it = new Item(`o${key}`, row.object.metadata, row.cells);
  if (before && state.picked === before) state.picked = it;
  items.set(key, it);
  // Sorted again only when there is more or less to sort.
  if (before && sorted[before.place] === before) {
    it.place = before.place;
    sorted[it.place] = it;
  } else isDirty = true;
}
function remove(row) {
  if (items.delete(keyOf(row))) isDirty = true;
}

function rows() {
  if (isDirty) {
    isDirty = false;
    sorted = [...items.values()].sort((one, other) => (one.key < other.key ? -1 : 1));
    sorted.forEach((it, place) => { it.place = place; });
    showHead();
  }
  const text = state.text.toLowerCase();
  const chosen = text ? sorted.filter((it) => it.hay.includes(text)) : sorted;
  chosen.forEach((it, at) => { it.at = at; });
  const count = `${counted(chosen.length, 'object', 'objects')}${isLoading ? '…' : ''}`;
  by('count').textContent = filters.kind ? count : '';
  return { rows: chosen, entries: chosen.length };
}

setInterval(() => {
  if (state.view === 'objects' && !document.hidden) remake();
}, AGES);

const shownColumns = () => columns.slice(0, narrow.matches ? FEW_COLUMNS : MOST_COLUMNS);
// Whether objects of several namespaces may be among them.
const isSpread = () => resource && resource.namespaced && !filters.namespace;

function showHead() {
  const names = shownColumns().map((it) => it.name);
  const tracks = ['minmax(0, 2.4fr)', ...names.map(() => 'minmax(0, 1fr)')];
  const cells = ['Name', ...names];
  if (isSpread() && !narrow.matches) {
    tracks.unshift('minmax(0, 1fr)');
    cells.unshift('Namespace');
  }
  by('stream').style.setProperty('--columns', tracks.join(' '));
  const texts = cells.map((text) => el('span', { text }));
  by('head').replaceChildren(el('div', { class: 'row object' }, ...texts));
}

function rowOf(it) {
  const prefix = narrow.matches && isSpread() ? aside(`${it.namespace}/`) : null;
  const cells = [el('span', { title: plain(full(it)) }, prefix, bdi(it.name))];
  if (isSpread() && !narrow.matches) {
    cells.unshift(el('span', { class: 'aside' }, bdi(it.namespace)));
  }
  for (const column of shownColumns()) {
    const text = cellOf(it, column);
    cells.push(el('span', { title: plain(text) }, bdi(text)));
  }
  const label = plain(`${full(it)} ${it.cells.slice(1, 4).join(' ')}`);
  const attributes = {
    class: 'row object first', role: 'option', id: it.key, 'aria-label': label,
  };
  return el('div', attributes, ...cells);
}
function cellOf(it, column) {
  // The age at which it was listed is soon over.
  if (column.name === 'Age' && it.born) return span((Date.now() - Date.parse(it.born)) / 1000);
  const value = it.cells[column.cell];
  return value === null || value === undefined ? '' : String(value);
}

function empty() {
  if (!filters.kind) {
    const text = 'Choose a collection above, or fill in a kind: pods, deploy, a custom resource.';
    return ['Which objects?', text];
  }
  // The notice says why.
  if (failed) return ['These objects cannot be listed', ''];
  if (isLoading) return ['Listing…', ''];
  return ['No such objects', 'None fits the namespace, labels and text. Esc clears the text.'];
}
