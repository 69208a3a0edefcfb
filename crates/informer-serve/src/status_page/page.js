// The status page of `kubectl informer serve`. It shows what the endpoint sends: texts become text
// nodes, never markup, and nothing is stored.
'use strict';

const MAX_CHANGES = 5000;
const MAX_FIELDS = 4;
const SAMPLES = 60;
const POLL = 1000;
const OVERSCAN = 12;
const SILENCE = 15000;
const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json';
const COMMON = ['pods', 'deployments', 'services', 'nodes', 'events', 'configmaps', 'jobs', 'ingresses'];

const by = (id) => document.getElementById(id);
const narrow = matchMedia('(max-width: 760px)');

// ---- Texts -------------------------------------------------------------------------------------

// Control characters, and those that turn the direction of a text, are shown as what they are.
const STRANGE = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;
const code = (letter) => '\\u' + letter.charCodeAt(0).toString(16).padStart(4, '0');
const plain = (text) => String(text).replace(STRANGE, code);

function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === 'class') node.className = value;
    else if (name === 'text') node.textContent = plain(value);
    else if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.filter((it) => it !== null && it !== undefined));
  return node;
}
const bdi = (text) => el('bdi', { dir: 'ltr', text });

const whole = new Intl.NumberFormat('en');
const number = (value) => whole.format(value);
function bytes(value) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let at = 0;
  while (value >= 1024 && at < units.length - 1) { value /= 1024; at += 1; }
  return `${at && value < 10 ? value.toFixed(1) : Math.round(value)} ${units[at]}`;
}
function span(seconds) {
  if (seconds < 1) return 'now';
  if (seconds < 120) return `${Math.floor(seconds)} s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} d`;
}
function clock(time) {
  const date = time ? new Date(time) : null;
  return date && !Number.isNaN(date.getTime()) ? date.toTimeString().slice(0, 8) : '–';
}
// The time of day here; its day and zone are in the title.
const timeOf = (time) => {
  const date = time ? new Date(time) : null;
  return el('time', { text: clock(time), title: date && !Number.isNaN(date.getTime()) ? `Local time: ${date}` : null });
};
const full = (it) => (it.namespace ? `${it.namespace}/${it.name}` : it.name);

// ---- State -------------------------------------------------------------------------------------

const state = {
  view: 'changes', run: null, held: new Map(), rates: new Map(), picked: null, detail: null,
  paused: false, text: '', noise: false, ok: false, faults: new Set(),
};
const filters = { kind: '', namespace: '', labels: '' };

// ---- Connection --------------------------------------------------------------------------------

const problems = new Map();
function problem(of, message, kind) {
  if (message) problems.set(of, { message, kind: kind || 'warn' }); else problems.delete(of);
  later(false);
  const first = problems.get('poll') || problems.get('changes') || problems.get('objects');
  const notice = by('notice');
  notice.hidden = !first;
  if (first) {
    if (notice.textContent !== plain(first.message)) notice.textContent = plain(first.message);
    notice.dataset.kind = first.kind;
  }
}
function connection(now, text) {
  const node = by('connection');
  if (node.dataset.state !== now) node.dataset.state = now;
  document.body.classList.toggle('lost', now === 'lost');
  if (by('connection-text').textContent !== text) by('connection-text').textContent = text;
}
const sentence = (text) => (/[.!?]$/.test(text) ? text : `${text}.`);
function advice(status, message) {
  switch (status) {
    case 0: return 'The endpoint does not answer: is `kubectl informer serve`, or the `kubectl proxy` in between, still running? This page goes on by itself as soon as it is there.';
    case 401: return 'Your credentials are not accepted (any more). Through `kubectl proxy`: renew your login, and start it again.';
    case 403: return `You may not see this: ${sentence(message)} Choose a kind and a namespace that you may watch.`;
    case 429: return `${sentence(message)} Close other pages and watches, or wait a moment.`;
    default: return message;
  }
}
class Refused extends Error {
  constructor(status, message) { super(message); this.status = status; }
}
async function ask(path, options) {
  let response;
  try {
    response = await fetch(path, { cache: 'no-store', credentials: 'omit', redirect: 'error', ...options });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new Refused(0, 'no answer');
  }
  if (response.ok) return response;
  let message = response.statusText;
  try { message = (await response.json()).message || message; } catch { /* No Status. */ }
  throw new Refused(response.status, message);
}
async function* lines(response) {
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
const pause = (time, signal) => new Promise((resolve) => {
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

// A stream that is opened again until it is stopped: at once after it ended, then less often.
function follow(of, path, take, options) {
  const stop = new AbortController();
  let wait = 250;
  (async () => {
    while (!stop.signal.aborted) {
      if (document.hidden) { await shown(stop.signal); continue; }
      const once = new AbortController();
      const end = () => once.abort();
      stop.signal.addEventListener('abort', end);
      let silence = setTimeout(end, SILENCE);
      try {
        const response = await ask(path(), { signal: once.signal, ...options });
        problem(of);
        clearTimeout(silence);
        silence = setTimeout(end, (options && options.silence) || SILENCE);
        for await (const batch of lines(response)) {
          clearTimeout(silence);
          silence = setTimeout(end, (options && options.silence) || SILENCE);
          wait = 250;
          if (stop.signal.aborted) return;
          take(batch);
        }
      } catch (error) {
        if (stop.signal.aborted) return;
        if (error instanceof Refused) {
          problem(of, advice(error.status, error.message), error.status ? 'warn' : 'bad');
          if (error.status === 410 || error.status === 400 || error.status === 403 || error.status === 404) {
            if (options && options.refused) options.refused(error);
            wait = Math.max(wait, 5000);
          }
        } else if (error.name !== 'AbortError' && !(error instanceof TypeError)) {
          problem(of, 'The endpoint sent what this page cannot read: reload the page.', 'bad');
        }
      } finally {
        clearTimeout(silence);
        stop.signal.removeEventListener('abort', end);
        once.abort();
      }
      await pause(wait * (0.75 + Math.random() / 2), stop.signal);
      wait = Math.min(wait * 2, 5000);
    }
  })();
  return () => stop.abort();
}
function shown(signal) {
  return new Promise((resolve) => {
    const look = () => { if (!document.hidden) done(); };
    const done = () => {
      document.removeEventListener('visibilitychange', look);
      signal.removeEventListener('abort', done);
      resolve();
    };
    document.addEventListener('visibilitychange', look);
    signal.addEventListener('abort', done);
  });
}

// ---- Collections -------------------------------------------------------------------------------

let last = null;
async function poll() {
  for (;;) {
    if (document.hidden) { await pause(POLL); continue; }
    const namespace = filters.namespace ? `?namespace=${encodeURIComponent(filters.namespace)}` : '';
    try {
      const answer = await (await ask(`ui/collections${namespace}`, { signal: AbortSignal.timeout(8000) })).json();
      problem('poll');
      connection('live', answer.user ? `live as ${plain(answer.user)}` : 'live');
      showCollections(answer);
    } catch (error) {
      const status = error instanceof Refused ? error.status : 0;
      connection('lost', status ? `refused (${status})` : 'not connected, trying again');
      problem('poll', advice(status, error.message), 'bad');
      await pause(POLL);
    }
    await pause(POLL);
  }
}

function showCollections(answer) {
  last = answer;
  if (state.run && state.run !== answer.run) state.rates.clear();
  state.run = answer.run;
  document.title = answer.namespace ? `informer · ${plain(answer.namespace)}` : 'informer';
  const now = Date.parse(answer.now);
  state.held = new Map(answer.collections.map((it) => [it.id, it]));
  const totals = { objects: 0, bytes: 0, events: 0, watchers: 0, hits: 0 };
  for (const { id, figures } of answer.collections) {
    if (!figures) continue;
    const rate = state.rates.get(id) || { samples: [], last: null };
    state.rates.set(id, rate);
    if (rate.last && now > rate.last.now + 200) {
      const events = Math.max(0, figures.events - rate.last.events);
      rate.samples.push((events * 1000) / (now - rate.last.now));
      if (rate.samples.length > SAMPLES) rate.samples.shift();
    }
    if (!rate.last || now > rate.last.now + 200) rate.last = { now, events: figures.events };
    for (const key of ['objects', 'bytes', 'watchers', 'hits']) totals[key] += figures[key];
    totals.events += rate.samples[rate.samples.length - 1] || 0;
  }
  const any = answer.collections.some((it) => it.figures);
  const limit = answer.totals ? ` of ${bytes(answer.totals.maxBytes)}` : '';
  by('total-objects').textContent = any ? number(totals.objects) : '–';
  by('total-bytes').textContent = any ? bytes(totals.bytes) : '–';
  by('total-bytes').title = limit.trim();
  by('total-events').textContent = any ? totals.events.toFixed(1) : '–';
  by('total-watchers').textContent = any ? number(totals.watchers) : '–';
  by('total-hits').textContent = any ? number(totals.hits) : '–';
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
    const row = before.get(key) || el('tr', { class: 'trouble', 'data-of': key }, el('td', { colspan: 9 }));
    const text = `${id} is not held, requests for it are forwarded: ${why}`;
    if (row.firstChild.textContent !== plain(text)) row.firstChild.textContent = plain(text);
    wanted.push(row);
  }
  if (wanted.length !== rows.children.length || wanted.some((it, at) => rows.children[at] !== it)) rows.replaceChildren(...wanted);
  const none = by('no-collections');
  none.hidden = answer.collections.length > 0;
  by('collections').querySelector('table').hidden = wanted.length === 0;
  if (!none.hidden && !none.hasChildNodes()) {
    none.append(el('strong', { text: 'Nothing is held that you may list' }),
      'A resource is held from the first read or watch of it on. Choose one to begin with; if you may read single namespaces only, fill in the namespace first.',
      el('div', {}, ...COMMON.slice(0, 4).map((name) => el('button', { type: 'button', text: name, onclick: () => choose(name) }))));
  }
  const names = [...new Set([...answer.collections.map((it) => it.name), ...COMMON])];
  const list = by('kinds');
  if (list.children.length !== names.length) list.replaceChildren(...names.map((value) => el('option', { value: plain(value) })));
}

function rowOf(it) {
  const spark = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  spark.setAttribute('class', 'spark');
  spark.setAttribute('viewBox', '0 0 59 20');
  spark.setAttribute('preserveAspectRatio', 'none');
  spark.setAttribute('aria-hidden', 'true');
  for (const of of ['area', 'line']) {
    const path = document.createElementNS('http://www.w3.org/2000/svg', 'path');
    path.setAttribute('class', of);
    spark.append(path);
  }
  const toggle = () => choose(isChosen(it) ? '' : it.name);
  return el('tr', { class: 'held', 'data-of': it.id },
    el('td', {}, el('button', { type: 'button', class: 'name', onclick: toggle, title: 'Select this kind' },
      el('bdi', { text: it.plural }), el('span', { class: 'group', text: it.group ? `.${it.group}` : '' }))),
    el('td', {}, el('span', { class: 'state' }, el('span', { class: 'dot' }), el('span')),
      el('button', { type: 'button', class: 'faults', hidden: '', onclick: () => {
        if (!state.faults.delete(it.id)) state.faults.add(it.id);
        showCollectionAgain();
      } })),
    el('td', { class: 'number' }), el('td', { class: 'number' }),
    el('td', { class: 'number' }, el('span', { class: 'rate' }, spark, el('span'))),
    el('td', { class: 'number' }), el('td', { class: 'number' }), el('td', { class: 'number' }),
    el('td', { class: 'number version' }));
}
function isChosen(it) {
  const kind = filters.kind.toLowerCase();
  return kind !== '' && [it.id, it.name, it.plural, it.kind.toLowerCase()].includes(kind);
}
function fill(row, it) {
  const cells = row.children;
  const set = (node, text) => { if (node.textContent !== text) node.textContent = text; };
  row.classList.toggle('chosen', isChosen(it));
  cells[0].firstChild.setAttribute('aria-pressed', String(isChosen(it)));
  const figures = it.figures;
  const [dot, word] = cells[1].firstChild.children;
  if (!figures) {
    set(word, 'held');
    return;
  }
  dot.dataset.state = figures.state.state;
  set(word, stateWord(figures.state));
  const faults = cells[1].lastChild;
  faults.hidden = figures.recentErrors.length === 0;
  faults.setAttribute('aria-expanded', String(state.faults.has(it.id)));
  set(faults, figures.errors === 1 ? '1 error' : `${number(figures.errors)} errors`);
  set(cells[2], number(figures.objects));
  set(cells[3], bytes(figures.bytes));
  const samples = (state.rates.get(it.id) || { samples: [] }).samples;
  sparkline(cells[4].querySelector('.spark'), samples);
  set(cells[4].firstChild.lastChild, (samples[samples.length - 1] || 0).toFixed(1));
  set(cells[5], figures.staleness === null ? '–' : span(figures.staleness));
  cells[5].classList.toggle('stale', figures.staleness > 90);
  set(cells[6], number(figures.watchers));
  set(cells[7], number(figures.hits));
  set(cells[8], plain(figures.resourceVersion));
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
function sparkline(svg, samples) {
  const top = Math.max(1, ...samples);
  const from = SAMPLES - samples.length;
  const points = samples.map((value, at) => `${from + at},${(19 - (value / top) * 17).toFixed(1)}`);
  const line = points.length ? `M${points.join('L')}` : '';
  svg.children[1].setAttribute('d', line);
  svg.children[0].setAttribute('d', line ? `${line}V20H${from}Z` : '');
}
const troubles = new Map();
function troubleOf(it, before) {
  const figures = it.figures;
  const cause = figures && figures.state.cause;
  const open = figures && state.faults.has(it.id);
  if (!cause && !open) return null;
  const errors = open ? figures.recentErrors : [];
  const key = JSON.stringify([cause, errors]);
  if (before && troubles.get(it.id) === key) return before;
  troubles.set(it.id, key);
  const items = errors.slice(0, 8).map((error) => el('li', {},
    timeOf(error.at), bdi(error.message),
    error.advice ? el('span', { class: 'advice', text: error.advice }) : null));
  return el('tr', { class: 'trouble', 'data-of': `${it.id} trouble` }, el('td', { colspan: 9 },
    cause ? el('div', {}, bdi(cause.message), figures.advice ? el('span', { class: 'advice', text: figures.advice }) : null) : null,
    items.length ? el('ul', {}, ...items) : null));
}
function showCollectionAgain() { if (last) showCollections(last); }

// ---- A list of which only what is seen exists ---------------------------------------------------

const list = by('list');
const shownRows = new Map();
let flat = [];
let draw = null;
function later(rebuild) {
  if (rebuild) later.rebuild = true;
  if (draw === null) draw = requestAnimationFrame(() => { draw = null; render(); });
}
const height = () => 26;

function render() {
  const top = list.scrollTop;
  if (later.rebuild) {
    later.rebuild = false;
    const anchor = top > 0 ? flat[Math.floor(top / height())] : null;
    flat = state.view === 'objects' ? objectRows() : changeRows();
    by('space').style.height = `${flat.length * height()}px`;
    if (anchor && state.view !== 'objects') {
      const at = flat.findIndex((it) => it.key === anchor.key);
      if (at >= 0) list.scrollTop = at * height() + (top % height());
    }
  }
  const from = Math.max(0, Math.floor(list.scrollTop / height()) - OVERSCAN);
  const to = Math.min(flat.length, Math.ceil((list.scrollTop + list.clientHeight) / height()) + OVERSCAN);
  const wanted = [];
  const keys = new Set();
  for (let at = from; at < to; at += 1) {
    const row = flat[at];
    keys.add(row.key);
    let node = shownRows.get(row.key);
    if (!node || node.made !== row.made) {
      node = row.make();
      node.made = row.made;
      shownRows.set(row.key, node);
    }
    const isPicked = row.of === state.picked;
    node.classList.toggle('picked', isPicked);
    if (node.getAttribute('role') === 'option') {
      node.setAttribute('aria-selected', String(isPicked));
      node.setAttribute('aria-posinset', (state.view === 'objects' ? at : row.at) + 1);
      node.setAttribute('aria-setsize', render.count);
    }
    wanted.push(node);
  }
  for (const key of shownRows.keys()) if (!keys.has(key)) shownRows.delete(key);
  const window = by('window');
  if (wanted.length !== window.children.length || wanted.some((it, at) => window.children[at] !== it)) window.replaceChildren(...wanted);
  window.style.transform = `translateY(${from * height()}px)`;
  const picked = state.picked && shownRows.get(state.picked.key);
  if (picked) list.setAttribute('aria-activedescendant', picked.id); else list.removeAttribute('aria-activedescendant');
  empty();
}
render.count = 0;
list.addEventListener('scroll', () => later(false), { passive: true });
new ResizeObserver(() => later(false)).observe(list);

function empty() {
  const node = by('empty');
  node.hidden = flat.length > 0;
  if (flat.length > 0) return;
  let [title, text] = ['', ''];
  if (state.view === 'objects') {
    if (!filters.kind) [title, text] = ['Which objects?', 'Choose a collection above, or fill in a kind: pods, deploy, a custom resource.'];
    else if (objects.loading) [title, text] = ['Listing…', ''];
    else if (objects.failed) [title, text] = ['These objects cannot be listed', objects.failed];
    else [title, text] = ['No such objects', 'None fits the namespace, labels and text. Esc clears the text.'];
  } else if (problems.has('changes')) {
    [title, text] = ['No changes can be followed', problems.get('changes').message];
  } else if (changes.all.length && (state.text || !state.noise)) {
    [title, text] = ['No change fits', state.text ? 'Esc clears the text.' : 'Only noise so far: heartbeats, versions. Press n to see it.'];
  } else {
    [title, text] = ['Quiet so far', 'Changes appear here as they happen, of everything that is held and that you may watch.'];
  }
  const key = title + text;
  if (node.dataset.key === key) return;
  node.dataset.key = key;
  node.replaceChildren(el('strong', { text: title }), document.createTextNode(plain(text)));
}

// ---- Changes -----------------------------------------------------------------------------------

const changes = { all: [], frozen: null, versions: new Map(), stop: null, serial: 0, waiting: 0 };
// The kinds of the resources that streams have named: the collections are polled, and may come later.
const kinds = new Map();
const takeKinds = (hello) => hello.resources.forEach((it) => kinds.set(it.id, it.kind));

function openChanges() {
  if (changes.stop) changes.stop();
  changes.all = [];
  changes.frozen = null;
  changes.waiting = 0;
  changes.versions.clear();
  state.picked = null;
  later(true);
  const path = () => {
    const query = new URLSearchParams();
    if (filters.kind) query.append('resource', filters.kind);
    if (filters.namespace) query.append('namespace', filters.namespace);
    if (filters.labels) query.append('labelSelector', filters.labels);
    for (const [resource, version] of changes.versions) query.append('after', `${resource}@${version}`);
    if (!changes.versions.size) query.append('last', '300');
    return `ui/changes?${query}`;
  };
  changes.stop = follow('changes', path, (batch) => {
    batch.forEach(takeChange);
    if (changes.all.length > MAX_CHANGES) changes.all.splice(0, changes.all.length - MAX_CHANGES);
    later(true);
  });
}
function takeChange(line) {
  switch (line.type) {
    case 'change': case 'gap': {
      const entry = prepared(line);
      changes.all.push(entry);
      if (state.paused && !line.past) changes.waiting += 1;
      break;
    }
    case 'at':
      for (const [resource, version] of Object.entries(line.versions)) changes.versions.set(resource, version);
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
function prepared(line) {
  changes.serial += 1;
  const diff = line.diff || { changes: [], more: 0, folded: 0 };
  const entry = { ...line, key: `c${changes.serial}`, diff };
  entry.kind = kindOf(line.resource);
  entry.quiet = line.verb === 'updated' && diff.changes.length === 0 && diff.more === 0;
  const values = diff.changes.map((it) => `${it.path} ${word(it.old)} ${word(it.new)}`).join(' ');
  entry.hay = `${line.verb || ''} ${line.resource} ${entry.kind} ${full({ namespace: line.namespace, name: line.name || '' })} ${values}`.toLowerCase();
  return entry;
}
function kindOf(resource) {
  const held = state.held.get(resource);
  return held ? held.kind : kinds.get(resource) || String(resource).split('.')[0];
}
// A value of the diff as one line.
function word(shown) {
  if (!shown) return '';
  if ('hiddenBytes' in shown) return `hidden, ${shown.hiddenBytes} bytes`;
  if ('text' in shown) return `${shown.from ? '…' : ''}${shown.text}${shown.from + shown.text.length < shown.bytes ? '…' : ''}`;
  const value = shown.value;
  return typeof value === 'string' ? value : JSON.stringify(value);
}
function selected() {
  const from = changes.frozen || changes.all;
  const text = state.text.toLowerCase();
  return from.filter((it) => (state.noise || !it.quiet) && (!text || it.hay.includes(text)));
}
function changeRows() {
  const entries = selected();
  const rows = [];
  const inline = !narrow.matches;
  for (let at = entries.length - 1; at >= 0; at -= 1) {
    const it = entries[at];
    const position = entries.length - 1 - at;
    const fields = it.diff.changes;
    const seen = Math.min(fields.length, MAX_FIELDS);
    rows.push({ key: it.key, of: it, at: position, made: inline, make: () => entryRow(it, inline) });
    for (let field = inline ? 1 : 0; field < seen; field += 1) {
      rows.push({ key: `${it.key}.${field}`, of: it, made: inline, make: () => partRow(it, fields[field], inline) });
    }
    const more = fields.length - seen + it.diff.more;
    if (more > 0) rows.push({ key: `${it.key}.more`, of: it, made: inline, make: () => moreRow(it, more, inline) });
  }
  render.count = entries.length;
  const waiting = state.paused && changes.waiting ? `, ${number(changes.waiting)} more since the pause` : '';
  by('count').textContent = `${number(entries.length)} ${entries.length === 1 ? 'change' : 'changes'}${waiting}`;
  return rows;
}
function entryRow(it, inline) {
  const kind = it.type === 'gap' ? 'gap' : it.verb;
  const label = it.type === 'gap' ? `changes of ${it.resource} were missed` : `${it.verb} ${it.kind} ${full(it)} ${it.diff.changes.slice(0, MAX_FIELDS).map((field) => `${field.path}: ${word(field.old)} to ${word(field.new)}`).join(', ')}`;
  const row = el('div', { class: `row entry first ${kind}${it.quiet ? ' quiet' : ''}`, role: 'option', id: it.key, 'aria-label': plain(label), onclick: () => open(it) },
    timeOf(it.time),
    el('span', { class: `verb ${kind}`, text: kind }));
  if (it.type === 'gap') {
    row.append(el('span', { class: 'what', text: it.resource }), el('span', { class: 'aside', text: 'changes before this are not known' }));
    return row;
  }
  row.append(el('span', { class: 'what', title: plain(`${it.kind} ${full(it)}`) }, el('span', { class: 'kind', text: it.kind }),
    el('span', { class: 'of', text: it.namespace ? `${it.namespace}/` : '' }), bdi(it.name)));
  if (!inline) return row;
  const first = it.diff.changes[0];
  if (first) row.append(pathOf(first), valuesOf(first));
  else row.append(el('span', { class: 'aside', text: it.quiet ? `noise only (${it.diff.folded})` : '' }));
  return row;
}
function partRow(it, field, inline) {
  const blank = inline ? [el('span'), el('span'), el('span')] : [];
  return el('div', { class: `row part${it.quiet ? ' quiet' : ''}`, 'aria-hidden': 'true', onclick: () => open(it) }, ...blank, pathOf(field), valuesOf(field));
}
function moreRow(it, more, inline) {
  const blank = inline ? [el('span'), el('span'), el('span')] : [];
  return el('div', { class: 'row part', 'aria-hidden': 'true', onclick: () => open(it) }, ...blank, el('span', { class: 'aside', text: `and ${number(more)} more` }));
}
const pathOf = (field) => el('span', { class: 'path', title: plain(field.path) }, bdi(field.path));
function valuesOf(field) {
  const node = el('span', { class: 'values' });
  if (field.op === 'reordered') {
    node.append(el('span', { class: 'aside', text: 'in another order' }));
    return node;
  }
  if (!field.old || !field.new) node.append(el('span', { class: 'sign', text: field.new ? '+' : '−' }));
  if (field.old) node.append(el('bdi', { class: 'old', text: word(field.old) }));
  if (field.old && field.new) node.append(el('span', { class: 'arrow', text: '→' }));
  if (field.new) node.append(el('bdi', { class: 'new', text: word(field.new) }));
  return node;
}
function setPaused(paused) {
  state.paused = paused;
  changes.frozen = paused ? changes.all.slice() : null;
  changes.waiting = 0;
  const button = by('pause');
  button.setAttribute('aria-pressed', String(paused));
  button.textContent = paused ? 'Go on' : 'Pause';
  if (!paused) list.scrollTop = 0;
  later(true);
}

// ---- Objects -----------------------------------------------------------------------------------

const objects = { rows: new Map(), sorted: [], columns: [], resource: null, stop: null, loading: false, failed: '', dirty: false };

function apiPath(it, namespace, name) {
  const group = it.group ? `apis/${it.group}/${it.version}` : `api/${it.version}`;
  const scope = it.namespaced && namespace ? `/namespaces/${encodeURIComponent(namespace)}` : '';
  return `${group}${scope}/${it.plural}${name ? `/${encodeURIComponent(name)}` : ''}`;
}
// The resource that is meant by the kind: one that is held, or what the endpoint makes of the name.
async function resolve(kind, signal) {
  for (const it of state.held.values()) if (isChosen(it)) return it;
  const query = new URLSearchParams({ resource: kind, follow: 'false' });
  if (filters.namespace) query.append('namespace', filters.namespace);
  const response = await ask(`ui/changes?${query}`, { signal });
  for await (const batch of lines(response)) {
    for (const line of batch) if (line.type === 'hello') return line.resources[0];
  }
  throw new Refused(404, `There is no ${kind}.`);
}
function openObjects() {
  closeObjects();
  if (!filters.kind) { later(true); return; }
  const stop = new AbortController();
  Object.assign(objects, { rows: new Map(), sorted: [], columns: [], resource: null, failed: '', loading: true, dirty: true });
  objects.stop = () => stop.abort();
  later(true);
  loadObjects(stop.signal).catch((error) => {
    if (stop.signal.aborted) return;
    objects.loading = false;
    objects.failed = advice(error instanceof Refused ? error.status : 0, error.message);
    later(true);
    pause(5000, stop.signal).then(() => { if (!stop.signal.aborted) openObjects(); });
  });
}
function closeObjects() {
  if (objects.stop) objects.stop();
  objects.stop = null;
  problem('objects');
}
async function loadObjects(signal) {
  const resource = await resolve(filters.kind, signal);
  objects.resource = resource;
  const base = apiPath(resource, filters.namespace);
  const labels = filters.labels ? `&labelSelector=${encodeURIComponent(filters.labels)}` : '';
  let [next, version] = ['', ''];
  do {
    const page = next ? `&continue=${encodeURIComponent(next)}` : '';
    const table = await (await ask(`${base}?limit=500${labels}${page}`, { signal, headers: { Accept: TABLE } })).json();
    if (signal.aborted) return;
    takeColumns(table.columnDefinitions);
    table.rows.forEach(putObject);
    next = table.metadata.continue || '';
    version = table.metadata.resourceVersion;
    objects.dirty = true;
    later(true);
  } while (next);
  objects.loading = false;
  later(true);
  const path = () => `${base}?watch=1&allowWatchBookmarks=true&timeoutSeconds=300&resourceVersion=${version}${labels}`;
  // Listed again, though never at once. Without the right to watch, what was listed stays.
  const again = () => {
    stop();
    pause(1000, signal).then(() => { if (!signal.aborted) openObjects(); });
  };
  const refused = (error) => { if (error.status === 410) again(); else stop(); };
  const stop = follow('objects', path, (batch) => {
    for (const event of batch) {
      if (event.type === 'ERROR') { again(); return; }
      const rows = event.object.rows || [];
      if (event.object.columnDefinitions && event.object.columnDefinitions.length) takeColumns(event.object.columnDefinitions);
      for (const row of rows) {
        version = row.object.metadata.resourceVersion;
        if (event.type === 'DELETED') removeObject(row); else if (event.type !== 'BOOKMARK') putObject(row);
      }
    }
    later(true);
  }, { headers: { Accept: TABLE }, silence: 90000, refused });
  signal.addEventListener('abort', stop);
}
function takeColumns(definitions) {
  if (!definitions || !definitions.length) return;
  objects.shown = definitions.map((it, at) => ({ ...it, at })).filter((it) => it.priority === 0);
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
    this.resource = objects.resource;
    this.at = -1;
    this.text = null;
  }
  get of() { return this; }
  get hay() {
    this.text = this.text || `${full(this)} ${this.cells.join(' ')}`.toLowerCase();
    return this.text;
  }
  make() { return objectRow(this); }
}
const keyOf = (row) => `${row.object.metadata.namespace || ''}/${row.object.metadata.name}`;
function putObject(row) {
  const metadata = row.object.metadata;
  const key = keyOf(row);
  const before = objects.rows.get(key);
  const it = new Item(`o${key}`, metadata, row.cells);
  if (before && state.picked === before) state.picked = it;
  objects.rows.set(key, it);
  // Sorted again only when there is more or less to sort.
  if (before && objects.sorted[before.at] === before) {
    it.at = before.at;
    objects.sorted[it.at] = it;
  } else objects.dirty = true;
}
function removeObject(row) {
  if (objects.rows.delete(keyOf(row))) objects.dirty = true;
}
function objectRows() {
  if (objects.dirty) {
    objects.dirty = false;
    objects.sorted = [...objects.rows.values()].sort((one, other) => (one.key < other.key ? -1 : 1));
    objects.sorted.forEach((it, at) => { it.at = at; });
    objectHead();
  }
  const text = state.text.toLowerCase();
  const chosen = text ? objects.sorted.filter((it) => it.hay.includes(text)) : objects.sorted;
  render.count = chosen.length;
  by('count').textContent = filters.kind ? `${number(chosen.length)} ${chosen.length === 1 ? 'object' : 'objects'}${objects.loading ? '…' : ''}` : '';
  return chosen;
}
// Ages go on.
setInterval(() => {
  if (state.view !== 'objects' || document.hidden) return;
  shownRows.clear();
  later(false);
}, 10000);
function columns() {
  const all = (objects.shown || []).filter((it) => it.name !== 'Name');
  return narrow.matches ? all.slice(0, 2) : all.slice(0, 7);
}
function objectHead() {
  const isSpread = objects.resource && objects.resource.namespaced && !filters.namespace;
  const tracks = ['minmax(0, 2.4fr)', ...columns().map(() => 'minmax(0, 1fr)')];
  if (isSpread && !narrow.matches) tracks.unshift('minmax(0, 1fr)');
  by('stream').style.setProperty('--columns', tracks.join(' '));
  const cells = ['Name', ...columns().map((it) => it.name)];
  if (isSpread && !narrow.matches) cells.unshift('Namespace');
  by('head').replaceChildren(el('div', { class: 'row object' }, ...cells.map((text) => el('span', { text }))));
  objects.isSpread = isSpread;
}
function objectRow(it) {
  const cells = [el('span', { title: plain(full(it)) }, narrow.matches && objects.isSpread ? el('span', { class: 'aside', text: `${it.namespace}/` }) : null, bdi(it.name))];
  if (objects.isSpread && !narrow.matches) cells.unshift(el('span', { class: 'aside' }, bdi(it.namespace)));
  for (const column of columns()) {
    const value = it.cells[column.at];
    // The age at which it was listed is soon over.
    const text = column.name === 'Age' && it.born ? span((Date.now() - Date.parse(it.born)) / 1000) : value === null || value === undefined ? '' : String(value);
    cells.push(el('span', { title: plain(text) }, bdi(text)));
  }
  return el('div', { class: 'row object first', role: 'option', id: it.key, 'aria-label': plain(`${full(it)} ${it.cells.slice(1, 4).join(' ')}`), onclick: () => open(it) }, ...cells);
}

// ---- One object --------------------------------------------------------------------------------

const detail = { of: null, stop: null, again: null, start: null };
function open(it, wait) {
  later(false);
  if (it.type === 'gap') return;
  state.picked = it;
  const resource = typeof it.resource === 'string' ? state.held.get(it.resource) || parsed(it) : it.resource;
  openObject(resource, it.namespace || '', it.name, it.verb === 'deleted', wait || 0);
}
// `deployments.v1.apps`
function parsed(it) {
  const [plural, version, ...group] = it.resource.split('.');
  return { id: it.resource, plural, version, group: group.join('.'), kind: it.kind, namespaced: Boolean(it.namespace) };
}
function openObject(resource, namespace, name, isGone, wait) {
  closeDetail(false);
  const of = { resource, namespace, name };
  detail.of = of;
  document.body.classList.add('with-detail');
  by('detail').hidden = false;
  by('detail-kind').textContent = plain(`${resource.kind} · ${resource.group ? `${resource.group}/` : ''}${resource.version}`);
  by('detail-name').replaceChildren(bdi(full(of)));
  by('history').replaceChildren(el('p', { class: 'empty', text: 'No change since this endpoint began to hold it.' }));
  by('yaml').replaceChildren('…');
  if (wait) detail.start = setTimeout(() => readObject(of, isGone), wait); else readObject(of, isGone);
}
function readObject(of, isGone) {
  const { resource, namespace, name } = of;
  const seen = new Map();
  const path = () => {
    const query = new URLSearchParams({ resource: resource.id, name, last: '50' });
    if (namespace) query.append('namespace', namespace);
    for (const [id, version] of seen) query.append('after', `${id}@${version}`);
    return `ui/changes?${query}`;
  };
  detail.stop = follow('detail', path, (batch) => {
    for (const line of batch) {
      if (line.type === 'hello') takeKinds(line);
      if (line.type === 'at') for (const [id, version] of Object.entries(line.versions)) seen.set(id, version);
      if (line.type !== 'change') continue;
      const history = by('history');
      if (!history.querySelector('.change')) history.replaceChildren();
      history.prepend(changeOf(prepared(line)));
      while (history.children.length > 50) history.lastChild.remove();
      if (line.verb === 'deleted') { clearTimeout(detail.again); gone(); } else if (!line.past) { clearTimeout(detail.again); detail.again = setTimeout(() => readYaml(of), 300); }
    }
  }, { refused: (error) => by('history').replaceChildren(el('p', { class: 'empty', text: advice(error.status, error.message) })) });
  if (isGone) gone(); else readYaml(of);
}
function gone() { by('yaml').replaceChildren(el('span', { class: 'note', text: '# It is gone. Its last changes tell how it was.' })); }
function changeOf(it) {
  const fields = it.diff.changes.map((field) => el('div', { class: 'field' }, pathOf(field), valuesOf(field)));
  const asides = [];
  if (it.diff.more) asides.push(`${number(it.diff.more)} more changes`);
  if (it.quiet) asides.push('noise only: versions, heartbeats and the like');
  return el('div', { class: `change${it.past ? '' : ' fresh'}` },
    el('p', {}, timeOf(it.time), el('span', { class: `verb ${it.verb}`, text: it.verb }),
      el('span', { class: 'aside', text: `version ${it.version}` })),
    ...fields, asides.length ? el('p', { class: 'aside', text: asides.join(', ') }) : null);
}
async function readYaml(of) {
  const node = by('yaml');
  try {
    const response = await ask(apiPath(of.resource, of.namespace, of.name), { headers: { Accept: 'application/json' } });
    const object = await response.json();
    if (detail.of !== of) return;
    const top = node.scrollTop;
    node.replaceChildren(...yaml(folded(object)));
    node.scrollTop = top;
  } catch (error) {
    if (detail.of !== of) return;
    const status = error instanceof Refused ? error.status : 0;
    if (status === 404) { gone(); return; }
    const text = advice(status, error.message);
    node.replaceChildren(el('span', { class: 'note', text: `# ${text}` }));
  }
}
// Without what nobody reads here; values of Secrets are not for a screen.
function folded(object) {
  const copy = structuredClone(object);
  if (copy.metadata) {
    delete copy.metadata.managedFields;
    const annotations = copy.metadata.annotations;
    if (annotations) delete annotations['kubectl.kubernetes.io/last-applied-configuration'];
    if (annotations && Object.keys(annotations).length === 0) delete copy.metadata.annotations;
  }
  if (copy.kind === 'Secret') {
    for (const part of ['data', 'stringData']) for (const key of Object.keys(copy[part] || {})) copy[part][key] = '(hidden)';
  }
  return copy;
}
function closeDetail(back) {
  if (detail.stop) detail.stop();
  clearTimeout(detail.again);
  clearTimeout(detail.start);
  detail.stop = null;
  detail.of = null;
  problem('detail');
  by('detail').hidden = true;
  document.body.classList.remove('with-detail');
  if (back) list.focus({ preventScroll: true });
}
function showTab(name) {
  for (const tab of ['history', 'yaml']) {
    by(tab).hidden = tab !== name;
    by(`tab-${tab}`).setAttribute('aria-selected', String(tab === name));
    by(`tab-${tab}`).tabIndex = tab === name ? 0 : -1;
  }
}

// ---- YAML --------------------------------------------------------------------------------------

const PLAIN = /^[A-Za-z_/][A-Za-z0-9_./-]*( [A-Za-z0-9_./-]+)*$/;
const RESERVED = /^(true|false|null|yes|no|on|off|y|n|\.inf|\.nan)$/i;
const quoted = (text) => (PLAIN.test(text) && !RESERVED.test(text) ? text : plain(JSON.stringify(text)));

// An object as YAML, in pieces of one colour.
function yaml(object) {
  const out = [];
  const put = (text, kind) => out.push(kind ? el('span', { class: kind }, text) : text);
  const scalar = (value, indent) => {
    if (typeof value !== 'string') return put(JSON.stringify(value), 'literal');
    const isBlock = value.includes('\n') && !/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/.test(value) && !/^[ \n]/.test(value) && plain(value.replace(/\n/g, '')) === value.replace(/\n/g, '');
    if (!isBlock) return put(quoted(value), 'text');
    const end = value.endsWith('\n\n') ? '+' : value.endsWith('\n') ? '' : '-';
    put(`|${end}`);
    const body = value.endsWith('\n') ? value.slice(0, -1) : value;
    return put(body.split('\n').map((line) => (line ? `\n${indent}${line}` : '\n')).join(''), 'text');
  };
  const isEmpty = (value) => typeof value === 'object' && value !== null && Object.keys(value).length === 0;
  const isNested = (value) => typeof value === 'object' && value !== null && !isEmpty(value);
  const walk = (value, indent, isFirst) => {
    if (Array.isArray(value)) {
      value.forEach((item, at) => {
        if (at > 0 || !isFirst) put(`${at > 0 || indent ? '\n' : ''}${indent}`);
        put('- ');
        if (isNested(item)) walk(item, `${indent}  `, true); else if (isEmpty(item)) put(JSON.stringify(item)); else scalar(item, `${indent}  `);
      });
      return;
    }
    Object.entries(value).forEach(([key, item], at) => {
      if (at > 0 || !isFirst) put(`\n${indent}`);
      put(quoted(key), 'key');
      put(':');
      if (isNested(item)) {
        walk(item, Array.isArray(item) ? indent : `${indent}  `, false);
      } else {
        put(' ');
        if (isEmpty(item)) put(JSON.stringify(item)); else scalar(item, `${indent}  `);
      }
    });
  };
  walk(object, '', true);
  put('\n');
  return out;
}

// ---- Controls ----------------------------------------------------------------------------------

function show(view) {
  state.view = view;
  document.body.dataset.view = view;
  for (const button of document.querySelectorAll('button[data-view]')) button.setAttribute('aria-pressed', String(button.dataset.view === view));
  const isObjects = view === 'objects';
  by('head').hidden = !isObjects;
  by('pause').hidden = isObjects;
  by('noise').parentElement.hidden = isObjects;
  list.setAttribute('aria-label', isObjects ? 'Objects' : 'Changes');
  state.picked = null;
  shownRows.clear();
  list.scrollTop = 0;
  if (isObjects) openObjects(); else closeObjects();
  remember();
  later(true);
}
function choose(kind) {
  by('kind').value = kind;
  if (narrow.matches) show(state.view === 'collections' ? 'changes' : state.view);
  applyFilters();
}
let applying = null;
function applySoon() { clearTimeout(applying); applying = setTimeout(applyFilters, 350); }
function applyFilters() {
  clearTimeout(applying);
  const now = { kind: by('kind').value.trim(), namespace: by('namespace').value.trim(), labels: by('labels').value.trim() };
  if (now.kind === filters.kind && now.namespace === filters.namespace && now.labels === filters.labels) return;
  Object.assign(filters, now);
  problem('changes');
  // What was frozen does not fit any more.
  if (state.paused) setPaused(false);
  openChanges();
  if (state.view === 'objects') openObjects();
  remember();
}
// The address says what is shown, to pass it on.
function remember() {
  const query = new URLSearchParams();
  if (state.view === 'objects') query.set('view', 'objects');
  for (const [key, value] of Object.entries(filters)) if (value) query.set(key, value);
  history.replaceState(null, '', query.size ? `#${query}` : location.pathname + location.search);
}
function recall() {
  const query = new URLSearchParams(location.hash.slice(1));
  for (const key of Object.keys(filters)) {
    filters[key] = query.get(key) || '';
    by(key === 'labels' ? 'labels' : key).value = filters[key];
  }
  show(query.get('view') === 'objects' ? 'objects' : 'changes');
}
function move(step) {
  const entries = state.view === 'objects' ? flat : flat.filter((it) => it.at !== undefined);
  if (!entries.length) return;
  const at = entries.findIndex((it) => it.of === state.picked);
  const to = step === -Infinity ? 0 : step === Infinity ? entries.length - 1
    : at < 0 ? 0 : Math.min(Math.max(at + step, 0), entries.length - 1);
  state.picked = entries[to].of;
  const place = (state.view === 'objects' ? to : flat.indexOf(entries[to])) * height();
  if (place < list.scrollTop) list.scrollTop = place;
  else if (place + 3 * height() > list.scrollTop + list.clientHeight) list.scrollTop = place + 3 * height() - list.clientHeight;
  // Who holds the key passes many, and reads the last.
  if (detail.of && !narrow.matches) open(state.picked, 150); else later(false);
}
document.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || by('help').open) return;
  const isTyping = event.target instanceof HTMLInputElement && event.target.type !== 'checkbox';
  if (event.key === 'Escape') {
    if (isTyping) {
      if (event.target.id === 'text') { event.target.value = ''; state.text = ''; later(true); }
      list.focus({ preventScroll: true });
    } else if (detail.of) closeDetail(true);
    else if (state.text) { by('text').value = ''; state.text = ''; later(true); }
    else { state.picked = null; later(false); }
    event.preventDefault();
    return;
  }
  if (isTyping) {
    if (event.key === 'Enter') { event.preventDefault(); applyFilters(); list.focus({ preventScroll: true }); }
    return;
  }
  const isPressed = event.target instanceof HTMLButtonElement;
  const keys = {
    '/': () => { by('text').focus(); by('text').select(); },
    j: () => move(1), k: () => move(-1), ArrowDown: () => move(1), ArrowUp: () => move(-1),
    g: () => move(-Infinity), G: () => move(Infinity),
    Enter: () => { if (state.picked) { open(state.picked); by('detail-name').focus({ preventScroll: true }); } },
    p: () => { if (state.view !== 'objects') setPaused(!state.paused); },
    o: () => show(state.view === 'objects' ? 'changes' : 'objects'),
    n: () => { by('noise').click(); },
    y: () => { if (detail.of) showTab(by('yaml').hidden ? 'yaml' : 'history'); },
    '?': () => by('help').showModal(),
  };
  const inPanel = by('detail').contains(event.target) && event.target !== by('detail-name');
  if (event.key.startsWith('Arrow') && (inPanel || isPressed)) return;
  if (event.key === 'Enter' && (isPressed || inPanel || event.target instanceof HTMLAnchorElement)) return;
  const action = keys[event.key];
  if (action) { event.preventDefault(); action(); }
});

// The part of the address after the # says what is shown: the link leaves it as it is.
document.querySelector('.skip').addEventListener('click', (event) => {
  event.preventDefault();
  list.focus({ preventScroll: true });
});
by('filters').addEventListener('submit', (event) => event.preventDefault());
for (const id of ['kind', 'namespace', 'labels']) {
  by(id).addEventListener('input', applySoon);
  by(id).addEventListener('change', applyFilters);
}
by('text').addEventListener('input', () => { state.text = by('text').value.trim(); list.scrollTop = 0; later(true); });
by('noise').addEventListener('change', () => { state.noise = by('noise').checked; later(true); });
by('pause').addEventListener('click', () => setPaused(!state.paused));
by('help-button').addEventListener('click', () => by('help').showModal());
by('detail-close').addEventListener('click', () => closeDetail(true));
for (const name of ['history', 'yaml']) by(`tab-${name}`).addEventListener('click', () => showTab(name));
for (const tab of [by('tab-history'), by('tab-yaml')]) {
  tab.addEventListener('keydown', (event) => {
    if (event.key !== 'ArrowLeft' && event.key !== 'ArrowRight') return;
    const other = by('yaml').hidden ? 'yaml' : 'history';
    showTab(other);
    by(`tab-${other}`).focus();
  });
}
for (const button of document.querySelectorAll('button[data-view]')) button.addEventListener('click', () => show(button.dataset.view));
const hint = () => { by('text').placeholder = narrow.matches ? 'any' : 'press /'; };
hint();
narrow.addEventListener('change', () => { hint(); shownRows.clear(); objects.dirty = true; if (!narrow.matches && state.view === 'collections') show('changes'); later(true); });

recall();
openChanges();
poll();
