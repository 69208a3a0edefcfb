// The table of collections and the totals at the top: polled, as each answer is short.

import { adviceOn, ask, connection, pause, problem, statusOf } from './connection.js';
import { filters } from './state.js';
import { awake } from './streams.js';
import { bdi, by, bytes, counted, el, fillWith, number, plain, set, span, timeOf } from './text.js';

// Pause between two polls, and how long an answer may take, in ms.
const POLL = 1000;
const PATIENCE = 8000;
// Length of a sparkline: one sample is the rate between two polls.
const SAMPLES = 60;
// Minimum time between two samples, in ms: answers that were held up come in a row.
const SAMPLE = 200;
// Seconds without a word of the API server after which it is said: bookmarks come every minute.
const STALE = 90;
// The most errors of a collection that are shown.
const ERRORS = 8;
// What the filter for a kind suggests beside what is held.
const COMMON = [
  'pods', 'deployments', 'services', 'nodes', 'events', 'configmaps', 'jobs', 'ingresses',
];
const SVG = 'http://www.w3.org/2000/svg';

// The collections by their id, as `deployments.v1.apps`.
export const held = new Map();
// Rates by id: `{ samples, now, events }`, the last two as of the last sample.
const rates = new Map();
// Ids of collections whose errors are shown.
const open = new Set();
// What the rows of errors show, by id.
const troubles = new Map();
let run = null;
let last = null;
let choose = () => {};

// Polls from now on. `chosen(kind)` is called with a kind that is selected in the table.
export async function pollCollections(chosen) {
  choose = chosen;
  for (;;) {
    await awake();
    const query = filters.namespace ? `?namespace=${encodeURIComponent(filters.namespace)}` : '';
    try {
      const options = { signal: AbortSignal.timeout(PATIENCE) };
      const answer = await (await ask(`ui/collections${query}`, options)).json();
      problem('poll');
      connection('live', answer.user ? `live as ${plain(answer.user)}` : 'live');
      showCollections(answer);
    } catch (error) {
      const status = statusOf(error);
      connection('lost', status ? `refused (${status})` : 'not connected, trying again');
      problem('poll', adviceOn(error), 'bad');
      await pause(POLL);
    }
    await pause(POLL);
  }
}

// Whether the filter for a kind means this resource.
export function isChosen(it) {
  const kind = filters.kind.toLowerCase();
  return kind !== '' && [it.id, it.name, it.plural, it.kind.toLowerCase()].includes(kind);
}

function showCollections(answer) {
  last = answer;
  if (run && run !== answer.run) rates.clear();
  run = answer.run;
  document.title = answer.namespace ? `informer · ${plain(answer.namespace)}` : 'informer';
  held.clear();
  for (const it of answer.collections) held.set(it.id, it);
  const now = Date.parse(answer.now);
  for (const { id, figures } of answer.collections) if (figures) sample(id, figures.events, now);
  showTotals(answer);
  showRows(answer);
  showNone(answer);
  const names = [...new Set([...answer.collections.map((it) => it.name), ...COMMON])];
  const list = by('kinds');
  if (list.children.length !== names.length) {
    list.replaceChildren(...names.map((value) => el('option', { value: plain(value) })));
  }
}

function sample(id, events, now) {
  const rate = rates.get(id);
  if (!rate) { rates.set(id, { samples: [], now, events }); return; }
  if (now <= rate.now + SAMPLE) return;
  rate.samples.push((Math.max(0, events - rate.events) * 1000) / (now - rate.now));
  if (rate.samples.length > SAMPLES) rate.samples.shift();
  Object.assign(rate, { now, events });
}
const samplesOf = (id) => (rates.has(id) ? rates.get(id).samples : []);
const rateOf = (id) => samplesOf(id).at(-1) || 0;

function showTotals(answer) {
  const shown = answer.collections.filter((it) => it.figures);
  const sum = (of) => shown.reduce((total, it) => total + of(it), 0);
  const put = (id, text) => { by(id).textContent = shown.length ? text : '–'; };
  put('total-objects', number(sum((it) => it.figures.objects)));
  put('total-bytes', bytes(sum((it) => it.figures.bytes)));
  by('total-bytes').title = answer.totals ? `of ${bytes(answer.totals.maxBytes)}` : '';
  put('total-events', sum((it) => rateOf(it.id)).toFixed(1));
  put('total-watchers', number(sum((it) => it.figures.watchers)));
  put('total-hits', number(sum((it) => it.figures.hits)));
}

function showRows(answer) {
  const rows = by('rows');
  const before = new Map([...rows.children].map((it) => [it.dataset.of, it]));
  const wanted = [];
  for (const it of answer.collections) {
    const row = before.get(it.id) || rowOf(it);
    fill(row, it);
    wanted.push(row);
    const trouble = troubleOf(it, before.get(`${it.id} trouble`));
    if (trouble) wanted.push(trouble);
  }
  for (const { id, why } of answer.forwarded) {
    const key = `${id} forwarded`;
    const row = before.get(key) || troubleRow(key);
    set(row.firstChild, plain(`${id} is not held, requests for it are forwarded: ${why}`));
    wanted.push(row);
  }
  fillWith(rows, wanted);
  by('collections').querySelector('table').hidden = wanted.length === 0;
}

function showNone(answer) {
  const none = by('no-collections');
  none.hidden = answer.collections.length > 0;
  const key = answer.offered.join();
  if (none.hidden || none.dataset.key === key) return;
  none.dataset.key = key;
  const button = (name) => {
    const onclick = () => choose(name);
    return el('button', { type: 'button', text: name, onclick });
  };
  none.replaceChildren(
    el('strong', { text: 'Nothing is held that you may list' }),
    'A resource is held from the first read or watch of it on. Fill in a kind to begin with; if '
      + 'you may read single namespaces only, the namespace first.',
    el('div', {}, ...answer.offered.map(button)),
  );
}

function rowOf(it) {
  const spark = document.createElementNS(SVG, 'svg');
  spark.setAttribute('class', 'spark');
  spark.setAttribute('viewBox', `0 0 ${SAMPLES - 1} 20`);
  spark.setAttribute('preserveAspectRatio', 'none');
  spark.setAttribute('aria-hidden', 'true');
  for (const of of ['area', 'line']) {
    const path = document.createElementNS(SVG, 'path');
    path.setAttribute('class', of);
    spark.append(path);
  }
  const toggle = () => choose(isChosen(it) ? '' : it.name);
  const toggleErrors = () => {
    if (!open.delete(it.id)) open.add(it.id);
    if (last) showRows(last);
  };
  const attributes = { type: 'button', class: 'name', onclick: toggle, title: 'Select this kind' };
  const name = el('button', attributes, el('bdi', { text: it.plural }),
    el('span', { class: 'group', text: it.group ? `.${it.group}` : '' }));
  const state = el('span', { class: 'state' }, el('span', { class: 'dot' }), el('span'));
  const errors = el('button',
    { type: 'button', class: 'faults', hidden: '', onclick: toggleErrors });
  const cell = (...children) => el('td', { class: 'number' }, ...children);
  return el('tr', { class: 'held', 'data-of': it.id },
    el('td', {}, name), el('td', {}, state, errors),
    cell(), cell(), cell(el('span', { class: 'rate' }, spark, el('span'))),
    cell(), cell(), cell(), el('td', { class: 'number version' }));
}

function fill(row, it) {
  const [name, state, objects, memory, rate, heard, watchers, hits, version] = row.children;
  row.classList.toggle('chosen', isChosen(it));
  name.firstChild.setAttribute('aria-pressed', String(isChosen(it)));
  const figures = it.figures;
  const [dot, word] = state.firstChild.children;
  if (!figures) {
    set(word, 'held');
    return;
  }
  dot.dataset.state = figures.state.state;
  set(word, stateWord(figures.state));
  const errors = state.lastChild;
  errors.hidden = figures.recentErrors.length === 0;
  errors.setAttribute('aria-expanded', String(open.has(it.id)));
  set(errors, counted(figures.errors, 'error', 'errors'));
  set(objects, number(figures.objects));
  set(memory, bytes(figures.bytes));
  sparkline(rate.querySelector('.spark'), samplesOf(it.id));
  set(rate.firstChild.lastChild, rateOf(it.id).toFixed(1));
  set(heard, figures.staleness === null ? '–' : span(figures.staleness));
  heard.classList.toggle('stale', figures.staleness > STALE);
  set(watchers, number(figures.watchers));
  set(hits, number(figures.hits));
  set(version, plain(figures.resourceVersion));
}

function stateWord(it) {
  switch (it.state) {
    case 'listing': return it.remaining ? `listing, ${number(it.remaining)} to come` : 'listing';
    case 'backingOff': return `trying again (${it.attempt})`;
    case 'notStarted': return 'not started';
    case 'unavailable': return 'not on the server';
    default: return it.state;
  }
}

export function sparkline(svg, samples) {
  const top = Math.max(1, ...samples);
  const from = SAMPLES - samples.length;
  const points = samples.map((it, at) => `${from + at},${(19 - (it / top) * 17).toFixed(1)}`);
  const line = points.length ? `M${points.join('L')}` : '';
  svg.children[1].setAttribute('d', line);
  svg.children[0].setAttribute('d', line ? `${line}V20H${from}Z` : '');
}

// The row with what is wrong with a collection; the one before, if that is the same.
function troubleOf(it, before) {
  const figures = it.figures;
  const cause = figures && figures.state.cause;
  const isOpen = figures && open.has(it.id);
  if (!cause && !isOpen) return null;
  const errors = isOpen ? figures.recentErrors : [];
  const key = JSON.stringify([cause, errors]);
  if (before && troubles.get(it.id) === key) return before;
  troubles.set(it.id, key);
  const advised = (text) => (text ? el('span', { class: 'advice', text }) : null);
  const items = errors.slice(0, ERRORS).map((error) => el('li', {},
    timeOf(error.at), bdi(error.message), advised(error.advice)));
  return troubleRow(`${it.id} trouble`,
    cause ? el('div', {}, bdi(cause.message), advised(figures.advice)) : null,
    items.length ? el('ul', {}, ...items) : null);
}
function troubleRow(key, ...children) {
  return el('tr', { class: 'trouble', 'data-of': key }, el('td', { colspan: 9 }, ...children));
}
